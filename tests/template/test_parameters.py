"""What a person may write into the parameters: what the functions could not read is refused at the deploy."""

from __future__ import annotations

import re

import pytest
from nebula.settings import RetirementSettings
from pydantic import TypeAdapter

from tests.support.cloudformation import written

DURATIONS = ("UnusedAfter", "SupersededAfter", "RetirementGrace", "MaxAge")
READ: TypeAdapter[object] = TypeAdapter(RetirementSettings.model_fields["unused_after"].annotation)


def _takes(parameter: str, text: str) -> bool:
    return re.fullmatch(written()["Parameters"][parameter]["AllowedPattern"], text) is not None


@pytest.mark.parametrize("parameter", DURATIONS)
@pytest.mark.parametrize("text", ["P7D", "PT10M", "P1W2D", "P1DT2H3M4S", "PT0S", "P9999D", "PT999999S"])
def test_a_duration_is_taken_that_the_functions_can_read(parameter: str, text: str) -> None:
    assert _takes(parameter, text)
    assert READ.validate_python(text) is not None


@pytest.mark.parametrize("parameter", DURATIONS)
@pytest.mark.parametrize("text", ["7d", "P", "PT", "P1DT", "-P1D", "P7DD", "7 days", "3600", "P10M", "P1Y", "PT1.5S"])
def test_any_other_is_refused_months_too_which_are_so_easily_meant_as_minutes(parameter: str, text: str) -> None:
    assert not _takes(parameter, text)


def test_only_the_maximum_age_may_be_left_empty() -> None:
    assert [name for name in DURATIONS if _takes(name, "")] == ["MaxAge"]


@pytest.mark.parametrize(
    ("parameter", "good", "bad"),
    [
        ("AlarmTopicArn", "arn:aws:sns:eu-west-1:123456789012:alarms", "alarms"),
        (
            "AlarmTopicArn",
            "arn:aws-cn:sns:cn-north-1:123456789012:on_call.fifo",
            "arn:aws:sqs:eu-west-1:123456789012:q",
        ),
        ("ParameterKeyArn", "arn:aws:kms:eu-west-1:123456789012:key/mrk-1a2b", "alias/mine"),
        (
            "ParameterKeyArn",
            "arn:aws:kms:eu-west-1:123456789012:key/1-2-3",
            "arn:aws:kms:eu-west-1:123456789012:alias/mine",
        ),
    ],
)
def test_an_arn_is_of_the_kind_that_it_is_used_as(parameter: str, good: str, bad: str) -> None:
    assert _takes(parameter, good)
    assert _takes(parameter, "")
    assert not _takes(parameter, bad)


def test_every_default_is_allowed() -> None:
    for name, spec in written()["Parameters"].items():
        if "AllowedPattern" in spec:
            assert _takes(name, str(spec["Default"])), name
