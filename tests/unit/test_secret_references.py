"""A cluster's access in Secrets Manager: the parameter names the secret, the secret holds the JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.stub import Stubber
from nebula.clock import ManualClock
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.kubernetes.clusters import ParameterClusters
from nebula.parameters import MemoryParameters, ParameterUnavailableError
from nebula.secret_references import SecretReferences

from tests.support.aws_stubs import stubbed

ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:nebula/i/clusters/main-AbCdEf"
PATH = "/nebula/i/clusters"
ACCESS = json.dumps({"server": "https://k.example", "auth": {"type": "bearer", "token": "token-hunter2"}})


class _Store:
    def __init__(self) -> None:
        self.clock = ManualClock(datetime(2026, 11, 1, tzinfo=UTC))
        self.parameters = MemoryParameters({f"{PATH}/main": ARN, f"{PATH}/plain": ACCESS})
        self.built = 0
        client, script = stubbed("secretsmanager")
        self.script: Stubber = script

        def build() -> Any:
            self.built += 1
            return client

        self.references = SecretReferences(self.parameters, build, self.clock)
        self.clusters = ParameterClusters(self.references, PATH, self.clock)

    def answers(self, **answer: Any) -> None:
        self.script.add_response("get_secret_value", answer, {"SecretId": ARN})


def test_the_secret_is_read_where_the_parameter_names_one_and_remembered() -> None:
    store = _Store()
    store.answers(SecretString=ACCESS)
    first = store.clusters.get("main")
    assert store.clusters.get("main") is first
    assert store.built == 1
    store.clock.advance(timedelta(minutes=5))
    store.answers(SecretString=ACCESS.replace("hunter2", "hunter3"))
    assert store.clusters.get("main") is not first
    store.script.assert_no_pending_responses()


def test_no_client_is_built_where_nothing_refers_to_a_secret() -> None:
    store = _Store()
    assert store.clusters.get("plain").name == "plain"
    assert store.clusters.names() == ("main", "plain")
    assert store.built == 0


@pytest.mark.parametrize("code", ["ResourceNotFoundException", "AccessDeniedException", "DecryptionFailure"])
def test_a_secret_that_cannot_be_read_makes_the_cluster_unknown(code: str) -> None:
    store = _Store()
    store.script.add_client_error("get_secret_value", code, "token-hunter2")
    with pytest.raises(ClusterUnavailableError, match=code) as refused:
        store.clusters.get("main")
    assert "hunter2" not in str(refused.value)


def test_a_secret_read_before_stays_in_use_while_it_cannot_be_read() -> None:
    store = _Store()
    store.answers(SecretString=ACCESS)
    first = store.clusters.get("main")
    store.clock.advance(timedelta(hours=2))
    store.script.add_client_error("get_secret_value", "InternalServiceError")
    assert store.clusters.get("main") is first


def test_a_binary_secret_is_not_taken_for_absence() -> None:
    store = _Store()
    store.answers(SecretBinary=b"x")
    with pytest.raises(ParameterUnavailableError, match="holds no text"):
        store.references.get(f"{PATH}/main")


def test_text_that_only_begins_like_an_arn_is_no_reference() -> None:
    store = _Store()
    store.parameters.values[f"{PATH}/main"] = "arn:aws:s3:::bucket"
    with pytest.raises(ClusterUnavailableError, match="wrong in: JSON"):
        store.clusters.get("main")
    assert store.references.get(f"{PATH}/absent") is None
    assert store.built == 0
