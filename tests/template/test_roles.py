"""Each function's role: bound to its own tables and queues, and unable to wake itself."""

from __future__ import annotations

import json

import pytest

from tests.support.cloudformation import (
    FUNCTIONS,
    ROLES,
    allowed,
    logical_id,
    managed_policies,
    mappings,
    of_type,
    properties,
    statements,
    written,
)

ITEM_WRITES = {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"}
ENI = {"ec2:DescribeSubnets", "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"}
READ = {
    "placement": {"ReadProviders", "ReadClusters"},
    "provisioning": {"ReadProviders", "ReadClusters", "ReadFingerprintKey"},
    "status_polling": {"ReadProviders", "ReadClusters"},
    "credential_retirement": {"ReadProviders", "ReadClusters", "ReadFingerprintKey"},
}
WRITES_TABLES = {
    "placement": {"ClaimsTable", "BlocksTable"},
    "provisioning": {"ClaimsTable", "BlocksTable", "CredentialsTable"},
    "status_polling": {"ClaimsTable", "BlocksTable"},
    "credential_retirement": {"CredentialsTable"},
}
CREDENTIALS = {
    "placement": set(),
    "provisioning": {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"},
    "status_polling": set(),
    "credential_retirement": {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Scan"},
}
SENDS = {
    "placement": {"TickQueue"},
    "provisioning": set(),
    "status_polling": {"TickQueue", "UndeliveredDeadLetters"},
    "credential_retirement": {"UndeliveredDeadLetters"},
}


def test_each_function_has_a_role_and_a_log_group_of_its_own() -> None:
    roles = {logical_id(properties(f)["Role"]) for f in FUNCTIONS.values()}
    groups = {logical_id(properties(f)["LoggingConfig"]["LogGroup"]) for f in FUNCTIONS.values()}
    assert roles == set(ROLES.values())
    assert groups == set(of_type("AWS::Logs::LogGroup"))
    assert len(groups) == len(FUNCTIONS)


@pytest.mark.parametrize("group", sorted(of_type("AWS::Logs::LogGroup")))
def test_logs_do_not_stay_for_ever(group: str) -> None:
    assert properties(group)["RetentionInDays"] == {"Ref": "LogRetentionDays"}


@pytest.mark.parametrize("role", sorted([*ROLES.values(), "SchedulerRole"]))
def test_no_role_has_a_wildcard_action_or_an_unbounded_resource(role: str) -> None:
    for statement in statements(role):
        assert all("*" not in action for action in statement.actions)
        # Lambda's calls for its interfaces have no narrower resource; test_vpc.py says what denies them to code.
        assert "*" not in statement.resources or all("NetworkInterface" in a or a in ENI for a in statement.actions)
        assert statement.resources


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_role_writes_its_own_tables_only(function: str) -> None:
    grants = allowed(ROLES[function], "dynamodb")
    written = {resource for resource, actions in grants.items() if actions & ITEM_WRITES}
    assert written == WRITES_TABLES[function]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_only_those_that_lend_or_retire_credentials_see_their_ledger(function: str) -> None:
    assert set(allowed(ROLES[function], "dynamodb").get("CredentialsTable", ())) == CREDENTIALS[function]


@pytest.mark.parametrize("function", ["provisioning", "status_polling"])
def test_what_was_sighted_is_read_by_those_that_compare_accounts(function: str) -> None:
    """Sightings lie in the blocks' table: a learnt account, and for the loop keys, orphans and where it stopped."""
    assert "dynamodb:GetItem" in allowed(ROLES[function], "dynamodb")["BlocksTable"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_role_queries_indexes_of_the_claims_table_by_name(function: str) -> None:
    indexes = [key for key in allowed(ROLES[function], "dynamodb") if "index/" in key]
    assert indexes
    for key in indexes:
        name = json.loads(key)["Fn::Sub"].rsplit("/", 1)[1]
        assert name in {i["IndexName"] for i in properties("ClaimsTable")["GlobalSecondaryIndexes"]}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_role_receives_from_the_queues_that_feed_its_function(function: str) -> None:
    grants = allowed(ROLES[function], "sqs")
    received = {queue for queue, actions in grants.items() if "sqs:ReceiveMessage" in actions}
    assert received == set(mappings(function))
    for queue in received:
        assert {"sqs:DeleteMessage", "sqs:GetQueueAttributes"} <= grants[queue]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_role_sends_to_the_queues_it_should(function: str) -> None:
    sent = {q for q, actions in allowed(ROLES[function], "sqs").items() if "sqs:SendMessage" in actions}
    assert sent == SENDS[function]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_function_can_write_to_a_queue_that_feeds_it(function: str) -> None:
    grants = allowed(ROLES[function], "sqs")
    loops = {q for q in mappings(function) if "sqs:SendMessage" in grants.get(q, set())}
    assert loops <= {"TickQueue"}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_function_can_wake_itself_through_the_bus(function: str) -> None:
    for rule in of_type("AWS::Events::Rule").values():
        if logical_id(rule["Targets"][0]["Arn"]) in mappings(function):
            assert f"nebula.{function}" not in rule["EventPattern"]["source"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_function_speaks_in_its_own_name_only(function: str) -> None:
    speaks = [s for s in statements(ROLES[function]) if "events:PutEvents" in s.actions]
    assert [s.condition for s in speaks] == [{"StringEquals": {"events:source": f"nebula.{function}"}}]
    assert [logical_id(s.resources[0]) for s in speaks] == ["Bus"]


def test_a_forwarder_speaks_as_kubernetes_only() -> None:
    (statement,) = properties("ForwarderPolicy")["PolicyDocument"]["Statement"]
    assert statement["Action"] == "events:PutEvents"
    assert statement["Condition"] == {"StringEquals": {"events:source": "nebula.kubernetes"}}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_role_reads_only_the_parameters_it_needs(function: str) -> None:
    assert set(managed_policies(ROLES[function])) == {*READ[function], "DecryptParameters", "JoinVpc"}
    for resource in allowed(ROLES[function], "ssm"):
        assert ":parameter/nebula/${Installation}/" in resource
    (secrets,) = allowed(ROLES[function], "secretsmanager").items()
    assert ":secret:nebula/${Installation}/clusters/*" in secrets[0]
    assert secrets[1] == {"secretsmanager:GetSecretValue"}


def test_a_key_of_ones_own_is_used_through_the_services_that_keep_secrets_only() -> None:
    (statement,) = properties("DecryptParameters")["PolicyDocument"]["Statement"]
    assert statement["Resource"] == {"Ref": "ParameterKeyArn"}
    services = [{"Fn::Sub": f"{name}.${{AWS::Region}}.${{AWS::URLSuffix}}"} for name in ("ssm", "secretsmanager")]
    assert statement["Condition"] == {"StringEquals": {"kms:ViaService": services}}


def test_the_stack_tells_which_identities_a_cluster_lets_in() -> None:
    (_, arns) = written()["Outputs"]["FunctionRoleArns"]["Value"]["Fn::Join"]
    assert {logical_id(arn) for arn in arns} == set(ROLES.values())
