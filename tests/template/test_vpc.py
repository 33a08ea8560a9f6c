"""Functions outside any VPC unless subnets are given; inside one, with interfaces that only Lambda may make."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cloudformation import FUNCTIONS, ROLES, managed_policies, properties, template, written


def test_without_subnets_there_is_no_vpc() -> None:
    assert written()["Parameters"]["VpcSubnetIds"]["Default"] == ""
    assert template()["Conditions"]["InVpc"] == {
        "Fn::Not": [{"Fn::Equals": [{"Fn::Join": ["", {"Ref": "VpcSubnetIds"}]}, ""]}]
    }


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_is_in_the_subnets_or_in_none(function: str) -> None:
    condition, inside, outside = properties(FUNCTIONS[function])["VpcConfig"]["Fn::If"]
    assert condition == "InVpc"
    assert inside == {"SubnetIds": {"Ref": "VpcSubnetIds"}, "SecurityGroupIds": {"Ref": "VpcSecurityGroupIds"}}
    assert outside == {"Ref": "AWS::NoValue"}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_role_may_make_interfaces_only_when_its_function_is_in_a_vpc(function: str) -> None:
    assert "JoinVpc" in managed_policies(ROLES[function])
    given = [arn for arn in properties(ROLES[function])["ManagedPolicyArns"] if "JoinVpc" in str(arn)]
    assert given == [{"Fn::If": ["InVpc", {"Ref": "JoinVpc"}, {"Ref": "AWS::NoValue"}]}]
    assert template()["Resources"]["JoinVpc"]["Condition"] == "InVpc"


def test_code_that_runs_in_a_function_may_not_touch_interfaces() -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html, on the role's permissions."""
    allow, deny = properties("JoinVpc")["PolicyDocument"]["Statement"]
    assert (allow["Effect"], deny["Effect"]) == ("Allow", "Deny")
    assert allow["Action"] == deny["Action"]
    condition: dict[str, Any] = deny["Condition"]["ArnLike"]
    assert condition["lambda:SourceFunctionArn"]["Fn::Sub"].endswith(
        ":lambda:${AWS::Region}:${AWS::AccountId}:function:*"
    )
