"""``python -m local.invoke FUNCTION EVENT.json``: one event to one function, with the fixtures it speaks of.

Starts the servers, puts the objects of ``local/fixtures`` into the cluster, deploys the template and calls the
real handler in its own environment. An event about a claim needs one, so the calls that lead to it come
first. What the handler logs goes to stderr, and so does what it sent; its answer is the only line on stdout.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nebula.events.envelope import MalformedEventError

from local import secrets
from local.aws import client
from local.deploy import deploy
from local.deployment import ROOT, Deployment, Endpoints
from local.runtime import Outcome, Runtime, take_environment
from local.scaling import Scale
from local.stack import Stack, StackFailedError

FUNCTIONS = ("placement", "provisioning", "status_polling", "credential_retirement")
_EVENTS = ROOT / "events"
#: What has to happen before an event of this detail-type makes sense: functions and the events they get.
_BEFORE: dict[str, tuple[tuple[str, str], ...]] = {
    "Claim Placed": (("placement", "pod-gated"),),
    "Claim Due": (("placement", "pod-gated"),),
    "Instance Ready": (("placement", "pod-gated"), ("provisioning", "claim-placed")),
    "Provision Rejected": (("placement", "pod-gated"),),
}


def run(function: str, event_path: Path) -> int:
    """Invoke; 0 when the handler answered, 1 when it failed, 2 when the event cannot be read."""
    try:
        event = json.loads(event_path.read_text(encoding="utf-8"))
    except OSError as error:
        print(f"invoke: {event_path}: {error.strerror}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"invoke: {event_path}: not JSON: {error}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="nebula-invoke-") as directory:
        stack = Stack(Path(directory), server_options=("--fixtures",))
        try:
            stack.start_servers()
            outcome = _invoke(stack.endpoints, function, event)
        except StackFailedError as error:
            print(f"invoke: {error}", file=sys.stderr)
            return 1
        finally:
            stack.stop()
    if outcome.error:
        print(json.dumps({"error": outcome.error, **_refusal(outcome)}))
        return 1
    print(json.dumps(outcome.result))
    return 0


def _refusal(outcome: Outcome) -> dict[str, str]:
    """What a malformed event lacks: that text names fields and never a value, unlike other errors'."""
    if outcome.error != MalformedEventError.__name__:
        return {}
    return {"problem": outcome.trace.strip().splitlines()[-1].partition(": ")[2]}


def _invoke(endpoints: Endpoints, function: str, event: Any) -> Outcome:
    deployment = deploy(client("cloudformation", endpoints), scale=Scale(1))
    secrets.fill(client("ssm", endpoints), deployment.functions[0].environment, endpoints)
    for earlier, name in _before(event):
        _say(f"first: {earlier} gets {name}")
        _call(deployment, endpoints, earlier, json.loads((_EVENTS / f"{name}.json").read_text(encoding="utf-8")))
    _drain(deployment, endpoints)
    _say(f"now: {function}")
    outcome = _call(deployment, endpoints, function, event)
    for queue, sent in _drain(deployment, endpoints):
        _say(f"sent to {queue}: {sent}")
    return outcome


def _before(event: Any) -> tuple[tuple[str, str], ...]:
    return _BEFORE.get(str(event.get("detail-type")), ()) if isinstance(event, dict) else ()


def _call(deployment: Deployment, endpoints: Endpoints, name: str, event: Any) -> Outcome:
    function = deployment.function(name)
    outside = dict(os.environ)
    take_environment(function, endpoints)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return Runtime(function).invoke(event)
    finally:
        os.environ.clear()
        os.environ.update(outside)


def _drain(deployment: Deployment, endpoints: Endpoints) -> list[tuple[str, str]]:
    """Take what lies in the queues: queue and detail-type of each message."""
    sqs = client("sqs", endpoints)
    found = []
    for name, url in deployment.queues.items():
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            found += [(name, str(json.loads(message["Body"]).get("detail-type"))) for message in messages]
    return found


def _say(text: str) -> None:
    print(f"-- {text}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and invoke."""
    parser = argparse.ArgumentParser(
        prog="invoke",
        usage=f"make invoke FN={'|'.join(FUNCTIONS)} EVENT=events/pod-gated.json",
        description="Give one event to one function.",
    )
    parser.add_argument("function", metavar="FN", choices=FUNCTIONS)
    parser.add_argument("event", metavar="EVENT", type=Path, help="a file of events/")
    options = parser.parse_args(arguments)
    return run(options.function, options.event)


if __name__ == "__main__":
    sys.exit(main())
