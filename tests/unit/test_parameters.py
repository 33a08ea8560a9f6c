"""Parameter Store: remembered with its absences; a failed read is never an absence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from nebula.clock import ManualClock
from nebula.parameters import MemoryParameters, ParameterUnavailableError, SsmParameters

from tests.support.aws_stubs import stubbed

NAME = "/nebula/i/providers/runpod"
ASKED = {"Name": NAME, "WithDecryption": True}
FIVE_MINUTES = timedelta(minutes=5)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 11, 1, tzinfo=UTC))


def value(text: str) -> dict[str, Any]:
    return {"Parameter": {"Name": NAME, "Value": text}}


def test_a_value_is_decrypted_and_remembered_for_five_minutes(clock: ManualClock) -> None:
    client, script = stubbed("ssm")
    parameters = SsmParameters(client, clock)
    script.add_response("get_parameter", value("key-1"), ASKED)
    for _ in range(2):
        found = parameters.get(NAME)
        assert found is not None
        assert found.get_secret_value() == "key-1"
        assert "key-1" not in repr(found)
    clock.advance(FIVE_MINUTES)
    script.add_response("get_parameter", value("key-2"), ASKED)
    renewed = parameters.get(NAME)
    assert renewed is not None
    assert renewed.get_secret_value() == "key-2"


def test_absence_is_remembered_too_and_heals(clock: ManualClock) -> None:
    client, script = stubbed("ssm")
    parameters = SsmParameters(client, clock)
    script.add_client_error("get_parameter", "ParameterNotFound", expected_params=ASKED)
    assert parameters.get(NAME) is None
    assert parameters.get(NAME) is None
    script.assert_no_pending_responses()
    clock.advance(FIVE_MINUTES)
    script.add_response("get_parameter", value("key"), ASKED)
    assert parameters.get(NAME) is not None


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException", "InternalServerError"])
def test_a_failed_read_is_not_an_absence(clock: ManualClock, code: str) -> None:
    client, script = stubbed("ssm")
    script.add_client_error("get_parameter", code)
    with pytest.raises(ParameterUnavailableError, match=code):
        SsmParameters(client, clock).get(NAME)


def test_a_value_stays_in_use_while_it_cannot_be_read_again(clock: ManualClock) -> None:
    client, script = stubbed("ssm")
    parameters = SsmParameters(client, clock)
    script.add_response("get_parameter", value("key"))
    parameters.get(NAME)
    clock.advance(FIVE_MINUTES)
    script.add_client_error("get_parameter", "InternalServerError")
    kept = parameters.get(NAME)
    assert kept is not None
    assert kept.get_secret_value() == "key"


def test_a_remembered_absence_does_not_outlast_a_failed_read(clock: ManualClock) -> None:
    client, script = stubbed("ssm")
    parameters = SsmParameters(client, clock)
    script.add_client_error("get_parameter", "ParameterNotFound")
    parameters.get(NAME)
    clock.advance(FIVE_MINUTES)
    script.add_client_error("get_parameter", "InternalServerError")
    with pytest.raises(ParameterUnavailableError):
        parameters.get(NAME)


def test_a_time_out_is_unavailable(clock: ManualClock) -> None:
    class Silent:
        def get_parameter(self, **_: object) -> None:
            raise ReadTimeoutError(endpoint_url="https://ssm.invalid")

    silent: Any = Silent()
    with pytest.raises(ParameterUnavailableError, match="ReadTimeoutError"):
        SsmParameters(silent, clock).get(NAME)


def test_names_below_a_path_come_from_every_page_without_their_values(clock: ManualClock) -> None:
    client, script = stubbed("ssm")
    asked = {"Path": "/nebula/i/clusters/", "Recursive": False, "WithDecryption": False}
    pages = [[{"Name": "/nebula/i/clusters/prod"}], [{"Name": "/nebula/i/clusters/dev"}]]
    script.add_response("get_parameters_by_path", {"Parameters": pages[0], "NextToken": "t"}, asked)
    script.add_response("get_parameters_by_path", {"Parameters": pages[1]}, asked | {"NextToken": "t"})
    parameters = SsmParameters(client, clock)
    for _ in range(2):
        assert parameters.names("/nebula/i/clusters") == ("dev", "prod")
    clock.advance(FIVE_MINUTES)
    script.add_client_error("get_parameters_by_path", "InternalServerError")
    assert parameters.names("/nebula/i/clusters") == ("dev", "prod")


def test_names_that_were_never_read_are_unavailable(clock: ManualClock) -> None:
    client, script = stubbed("ssm")
    script.add_client_error("get_parameters_by_path", "AccessDeniedException")
    with pytest.raises(ParameterUnavailableError):
        SsmParameters(client, clock).names("/nebula/i/clusters")


def test_the_memory_twin() -> None:
    parameters = MemoryParameters({"/p/b": "2", "/p/a": "1", "/p/deep/c": "3", "/q": "4"})
    assert parameters.names("/p") == ("a", "b")
    found = parameters.get("/p/a")
    assert found is not None
    assert found.get_secret_value() == "1"
    assert parameters.get("/p/z") is None
    parameters.unavailable = True
    for read in (parameters.get, parameters.names):
        with pytest.raises(ParameterUnavailableError):
            read("/p/a")
