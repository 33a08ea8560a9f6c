"""What one Pod's life costs in calls and writes, counted where they leave the product.

Provider calls are the simulated provider's own count, Kubernetes writes the API emulator's, item writes those that
DynamoDB's client sends. Writes to the virtual Node, its Lease and the NodePool's status come once a tick or once a
minute however many Pods there are, and are kept apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from nebula.clock import ManualClock
from nebula.providers.simulated import DEFAULT_CAPABILITIES, Behaviour, Call, SimulatedProvider
from nebula.stores.dynamo_blocks import DynamoBlockStore
from nebula.stores.dynamo_claims import DynamoClaimStore
from nebula.stores.dynamo_credentials import DynamoCredentialStore
from nebula.stores.dynamo_sightings import DynamoSightingStore

from local.kubernetes.resources import SECRETS
from tests.support.dynamo_calls import count_calls
from tests.support.lending import docker_config, pull_secret
from tests.support.world import START, World, running, until_true

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

BOOT = timedelta(seconds=50)
_WRITES = frozenset({"create", "update", "patch", "delete"})
_SHARED = ("nodes", "leases", "nodepools")


@dataclass(frozen=True)
class Life:
    """How a Pod lives: on which machine, with which spec, and whether it ends by itself before it is deleted.

    The credential of a ``private`` image is lent already, as it is to every Pod but the first.
    """

    behaviour: Behaviour = field(default_factory=Behaviour)
    queues: bool = False
    spec: Mapping[str, Any] = field(default_factory=dict)
    private: bool = False
    ends_itself: bool = False


_LOGIN = {"imagePullSecrets": [{"name": "login"}]}
LIVES = {
    "runs at once": Life(),
    "boots first": Life(Behaviour(boot=BOOT)),
    "queues first": Life(Behaviour(boot=BOOT), queues=True),
    "has fields that are ignored": Life(Behaviour(boot=BOOT), spec={"hostname": "box"}),
    "has a private image": Life(Behaviour(boot=BOOT), private=True, spec=_LOGIN),
    "finishes by itself": Life(Behaviour(runs_for=6 * BOOT), spec={"restartPolicy": "Never"}, ends_itself=True),
}


@dataclass(frozen=True)
class LifeCost:
    """One life's counts. ``kubernetes`` and ``shared`` hold writes by (verb, resource)."""

    provider: Counter[str]
    kubernetes: Counter[tuple[str, str]]
    shared: Counter[tuple[str, str]]
    items: Counter[tuple[str, str]]
    item_writes: int

    @property
    def kubernetes_writes(self) -> int:
        """Writes about this Pod, Events included."""
        return self.kubernetes.total()


class CountedWorld:
    """An installation over DynamoDB's stores whose calls are counted."""

    def __init__(self, dynamodb: DynamoDBClient, life: Life) -> None:
        clock = ManualClock(START)
        capabilities = DEFAULT_CAPABILITIES.model_copy(update={"queues": life.queues})
        self.provider = SimulatedProvider(clock, capabilities=capabilities, behaviour=life.behaviour)
        self.world = World(
            self.provider,
            clock=clock,
            claims=DynamoClaimStore(dynamodb, "claims"),
            blocks=DynamoBlockStore(dynamodb, "blocks"),
            credentials=DynamoCredentialStore(dynamodb, "credentials"),
            sightings=DynamoSightingStore(dynamodb, "blocks"),
        )
        self._dynamodb = dynamodb
        self.life = life
        self._deletes_by_user = 0
        if life.private:
            config = docker_config(("registry.example.com", "somebody", "secret-word"))
            self.world.emulator.create(
                SECRETS, "default", {"metadata": {"name": "login"}, **_unnamed(pull_secret(config))}
            )

    def start(self, name: str = "train") -> None:
        """Create a Pod and let it come to run."""
        self.world.create_pod(name, **self.life.spec)
        self.world.pump()
        until_true(self.world, lambda: running(self.world.pod(name)))

    def end(self, name: str = "train") -> None:
        """Let the Pod end as its life has it, delete it and wait until nothing is left of it."""
        if self.life.ends_itself:
            until_true(self.world, lambda: self._phase(name) == "Succeeded")
        self.world.delete_pod(name)
        self._deletes_by_user += 1
        self.world.pump()
        self.world.tick()
        until_true(self.world, lambda: self.world.pod(name) is None and not list(self.world.claims.live("test")))

    def whole_life(self) -> LifeCost:
        """Start, run two quiet minutes, end; the counts of it all."""
        # What an installation notes once (its clusters, its keys' fingerprints) is no Pod's cost.
        self.world.minute()
        if self.life.private:
            self.start("before")
            self.end("before")
        before, calls = self.kubernetes_writes(), count_calls(self._dynamodb)
        made = Counter(self.provider.script.counts)
        self.start()
        self.world.run(2)
        self.end()
        writes = self.kubernetes_writes() - before
        shared = Counter({call: n for call, n in writes.items() if call[1].startswith(_SHARED)})
        counts = self.provider.script.counts - made
        return LifeCost(
            provider=Counter({str(call): n for call, n in counts.items() if call is not Call.OFFERINGS}),
            kubernetes=writes - shared,
            shared=shared,
            items=calls.operations,
            item_writes=calls.item_writes,
        )

    def kubernetes_writes(self) -> Counter[tuple[str, str]]:
        """What the product wrote through the API so far."""
        return Counter({call: n for call, n in self.kubernetes_calls().items() if call[0] in _WRITES})

    def kubernetes_calls(self) -> Counter[tuple[str, str]]:
        """What the product asked of the API so far, by (verb, resource)."""
        calls = Counter(self.world.emulator.calls)
        calls["delete", "pods"] -= self._deletes_by_user
        return calls

    def _phase(self, name: str) -> str:
        pod = self.world.pod(name)
        return "" if pod is None else str(pod["status"].get("phase"))


def _unnamed(secret: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in secret.items() if key != "metadata"}
