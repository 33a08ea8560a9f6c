"""The local stack as a whole: real functions, real template, everything over sockets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nebula.domain.claim import Phase

from local.aws import client
from local.stack import Stack
from tests.support.local_stack import World, wait_until

pytestmark = [pytest.mark.network, pytest.mark.slow]

JUNK: dict[str, Any] = {
    "wrong types": {
        "source": "nebula.kubernetes",
        "detail-type": "Pod Gated",
        "detail": {"uid": 7, "name": ["TELLTALE"]},
    },
    "missing uid": {
        "source": "nebula.kubernetes",
        "detail-type": "Pod Gated",
        "detail": {"schema_version": 1, "cluster": "demo", "namespace": "default", "name": "telltale"},
    },
    "a list for an object": {"source": "nebula.kubernetes", "detail-type": "Pod Gated", "detail": ["TELLTALE"]},
    "200 KB of junk": "TELLTALE" * 25_000,
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory: Path = tmp_path_factory.mktemp("local")
    with Stack(directory / "stack", divisor=60) as stack:
        world = World(stack)
        world.apply_policies()
        yield world


def test_malformed_messages_reach_the_dead_letters_and_harm_no_other(world: World) -> None:
    queue = world.stack.worker.deployment.queues["PlacementQueue"]
    sqs = client("sqs", world.endpoints)
    entries = [{"Id": str(n), "MessageBody": json.dumps(body)} for n, body in enumerate(JUNK.values())]
    for entry in entries:
        sqs.send_message_batch(QueueUrl=queue, Entries=[entry])
    world.create_pod("indexer", "beside-junk")
    wait_until(lambda: world.phase("beside-junk") == "Running", "a Pod beside the junk runs")
    wait_until(lambda: world.messages("PlacementDeadLetters") == len(JUNK), "the junk lies in the dead letters")
    wait_until(lambda: world.messages("PlacementQueue") == 0, "nothing else comes back")

    log = world.stack.log("worker").read_text()
    assert "detail.uid" in log
    assert "TELLTALE" not in log.upper()


def test_every_event_sent_twice_changes_nothing(world: World) -> None:
    events = client("events", world.endpoints)
    bus = world.stack.worker.deployment.outputs["EventBusName"]
    uid = world.create_pod("indexer", "twice")

    def say(kind: str) -> None:
        detail = {"schema_version": 1, "cluster": "demo", "namespace": "default", "name": "twice", "uid": uid}
        entry = {"Source": "nebula.kubernetes", "DetailType": kind, "EventBusName": bus, "Detail": json.dumps(detail)}
        events.put_events(Entries=[entry, entry])

    say("Pod Deleted")
    say("Pod Gated")
    wait_until(lambda: world.phase("twice") == "Running", "the Pod runs")
    say("Pod Gated")
    say("Pod Changed")
    say("Pod Deleted")
    world.create_pod("indexer", "after-twice")
    wait_until(lambda: world.phase("after-twice") == "Running", "what came later was handled")
    assert world.phase("twice") == "Running"
    mine = [pod for pod in world.console.state()["pods"] if "-twice-" in pod["name"] and "after" not in pod["name"]]
    assert [pod["id"] for pod in mine] == [world.instance_of("twice")]

    world.kubectl.delete("Pod", "twice")
    say("Pod Deleted")
    wait_until(lambda: world.phase("twice") == "" and mine[0]["id"] not in world.alive(), "the Pod is given back")
    say("Pod Gated")
    say("Pod Deleted")

    def closed() -> bool:
        claim = world.claim(uid)
        return claim is not None and claim.phase is Phase.TERMINATED

    wait_until(closed, "the claim is closed")
    assert mine[0]["id"] not in world.alive()


def test_an_ordinary_life_costs_one_create(world: World) -> None:
    creates_before = len(world.console.requests("POST", "/v2/pods"))
    uid = world.create_pod("indexer", "ordinary")
    wait_until(lambda: world.claim(uid) is not None, "there is a claim")
    wait_until(lambda: world.phase("ordinary") == "Running", "the Pod runs")
    claim = world.claim(uid)
    assert claim is not None
    (attempt,) = claim.attempts
    assert attempt.instance_id == world.instance_of("ordinary")
    assert len(world.console.requests("POST", "/v2/pods")) == creates_before + 1


def test_functions_answer_a_direct_invocation(world: World) -> None:
    functions = client("lambda", world.endpoints.model_copy(update={"aws": world.stack.worker.lambda_url}))
    event = {"source": "nebula.schedule", "detail-type": "Status Poll Scheduled", "detail": {"schema_version": 1}}
    answer = functions.invoke(FunctionName="status_polling", Payload=json.dumps(event))
    assert (answer["StatusCode"], answer.get("FunctionError")) == (200, None)
    wrong = functions.invoke(FunctionName="status_polling", Payload=json.dumps({"source": "x"}))
    assert wrong["FunctionError"] == "Unhandled"
    assert json.loads(wrong["Payload"].read())["errorType"] == "MalformedEventError"


def test_no_function_did_what_its_role_forbids(world: World) -> None:
    assert "access denied" not in world.stack.log("worker").read_text()
