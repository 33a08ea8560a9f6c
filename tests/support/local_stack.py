"""A local stack for a test, and what a person would look at in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nebula.domain.claim import Claim, claim_id_for
from nebula.kubernetes import names
from nebula.stores.dynamo_claims import DynamoClaimStore

from local import run_files
from local.aws import client
from local.kubectl import Kubectl
from local.restore import fixtures
from local.run_files import ServersFile
from local.runpod_console import RunPodConsole
from local.stack import Stack

WAIT_SECONDS = 45.0


def wait_until(reached: Callable[[], bool], what: str, *, seconds: float = WAIT_SECONDS) -> None:
    """Look until it is so; AssertionError with ``what`` otherwise."""
    until = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < until, f"not within {seconds:g} s: {what}"
        time.sleep(0.05)


def redirect(directory: Path, **urls: str) -> None:
    """Give a worker that starts later other addresses than the servers' own."""
    file = run_files.read(directory, ServersFile)
    assert file is not None
    run_files.write(directory, file.model_copy(update={"endpoints": file.endpoints.model_copy(update=urls)}))


class World:
    """One stack seen from outside: cluster, provider, ledger."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.endpoints = stack.endpoints
        self.kubectl = Kubectl(stack.endpoints)
        self.console = RunPodConsole(stack.endpoints)
        self.console.set("timing", provisioning=0.2, starting=0.2, ports=0.1)

    def apply_policies(self) -> None:
        """Everything of the fixtures that is no Pod."""
        for obj in fixtures():
            if obj["kind"] != "Pod":
                self.kubectl.create(obj)

    def create_pod(self, fixture: str, name: str | None = None) -> str:
        """Create a Pod like a fixture; its uid."""
        (pod,) = (obj for obj in fixtures() if obj["kind"] == "Pod" and obj["metadata"]["name"] == fixture)
        pod["metadata"]["name"] = name or fixture
        return str(self.kubectl.create(pod)["metadata"]["uid"])

    def claim(self, uid: str) -> Claim | None:
        """The claim of a Pod."""
        table = self.stack.worker.deployment.outputs["ClaimsTableName"]
        store = DynamoClaimStore(client("dynamodb", self.endpoints), table)
        return store.get(claim_id_for(self.endpoints.cluster, uid))

    def phase(self, name: str) -> str:
        """``Running``, ``Pending`` …; empty when there is no such Pod."""
        pod = self.kubectl.get("Pod", name)
        return "" if pod is None else str(pod["status"].get("phase"))

    def instance_of(self, name: str) -> str:
        """The instance that a released Pod names; empty before."""
        pod: dict[str, Any] = self.kubectl.get("Pod", name) or {"metadata": {}}
        return str((pod["metadata"].get("annotations") or {}).get(names.ANNOTATION_INSTANCE_ID, ""))

    def made(self) -> list[str]:
        """Ids of every instance ever made, in order."""
        return [pod["id"] for pod in self.console.state()["pods"]]

    def alive(self) -> list[str]:
        """Ids of the instances that are billed now."""
        return [pod["id"] for pod in self.console.alive()]

    def messages(self, queue: str) -> int:
        """Messages in a queue, hidden ones included."""
        names_ = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        url = self.stack.worker.deployment.queues[queue]
        found = client("sqs", self.endpoints).get_queue_attributes(QueueUrl=url, AttributeNames=names_)
        return sum(int(found["Attributes"][name]) for name in names_)
