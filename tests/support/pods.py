"""Pods and claims for the tests of what becomes of a Pod's fields."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, cast

from nebula.clock import ManualClock
from nebula.domain.candidate import Candidate, CapacityType, Price, Shape
from nebula.domain.claim import Attempt, AttemptOutcome, Claim, Observation, Phase
from nebula.domain.nodepool import NodePool, ProviderEntry
from nebula.kubernetes.api import ForbiddenError, KubernetesApi
from nebula.kubernetes.pod import Pod

from local.kubernetes.adapter import client
from local.kubernetes.resources import NAMESPACES, PODS
from local.kubernetes.server import Emulator
from tests.support.chance import repeatable

Object = dict[str, Any]
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
GATE = "nebula.inftyai.com/provider-selection"


def container(**fields: Any) -> Object:
    """The one container of a Pod."""
    return {"name": "main", "image": "example.com/app:1", **fields}


def pod_object(
    *containers: Object, labels: Object | None = None, annotations: Object | None = None, **spec: Any
) -> Object:
    """A gated, opted-in Pod; ``spec`` holds further fields of its spec."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-0",
            "namespace": "team",
            "uid": "uid-1",
            "resourceVersion": "7",
            "generation": 1,
            "labels": {"nebula.inftyai.com/enabled": "true", "nebula.inftyai.com/nodepool": "demo", **(labels or {})},
            "annotations": annotations or {},
        },
        "spec": {"containers": list(containers) or [container()], "schedulingGates": [{"name": GATE}], **spec},
        "status": {"phase": "Pending"},
    }


def pod(*containers: Object, **fields: Any) -> Pod:
    """``pod_object`` as a view."""
    return Pod.from_object(pod_object(*containers, **fields))


def node_pool(**fields: Any) -> NodePool:
    """A NodePool over RunPod."""
    return NodePool(name="demo", providers=(ProviderEntry(name="runpod"),), **fields)


class References:
    """A namespace's Secrets and ConfigMaps; ``reads`` counts what was asked for."""

    def __init__(
        self, *, secrets: Object | None = None, config_maps: Object | None = None, forbidden: bool = False
    ) -> None:
        self._secrets = {name: _encoded(data) for name, data in (secrets or {}).items()}
        self._config_maps = {name: {"data": data} for name, data in (config_maps or {}).items()}
        self._forbidden = forbidden
        self.reads: list[tuple[str, str]] = []

    def get_secret(self, namespace: str, name: str) -> Object | None:
        self.reads.append((namespace, name))
        if self._forbidden:
            raise ForbiddenError("GET secrets: 403")
        return self._secrets.get(name)

    def get_config_map(self, namespace: str, name: str) -> Object | None:
        self.reads.append((namespace, name))
        return self._config_maps.get(name)

    @property
    def api(self) -> KubernetesApi:
        """Typed as the whole API, of which translation uses two reads."""
        return cast(KubernetesApi, self)


def _encoded(data: dict[str, str | bytes]) -> Object:
    raw = {key: value if isinstance(value, bytes) else value.encode() for key, value in data.items()}
    return {"data": {key: base64.b64encode(value).decode() for key, value in raw.items()}}


def claim(phase: Phase = Phase.RELEASED, *, outcome: AttemptOutcome = AttemptOutcome.CREATED, **fields: Any) -> Claim:
    """A claim with one attempt, released at ``NOW`` unless told otherwise."""
    shape = Shape(accelerator="H100", accelerator_count=1)
    candidate = Candidate(
        provider="runpod",
        capacity_type=CapacityType.ON_DEMAND,
        shape=shape,
        price=Price(total=Decimal(2), source="test"),
        reserve_per_hour=Decimal(2),
    )
    attempt = Attempt(
        number=1, candidate=candidate, started_at=NOW, lease_until=NOW, outcome=outcome, instance_id="instance-1"
    )
    base: Object = {
        "claim_id": "0" * 32,
        "phase": phase,
        "cluster": "demo",
        "namespace": "team",
        "pod_name": "web-0",
        "pod_uid": "uid-1",
        "node_pool": "demo",
        "shape": shape,
        "created_at": NOW,
        "updated_at": NOW,
        "phase_since": NOW,
        "released_at": NOW,
        "candidate": candidate,
        "attempts": (attempt,),
        "observation": Observation(),
    }
    return Claim(**{**base, **fields})


def events_of(emulator: Emulator, namespace: str) -> list[Object]:
    """The core/v1 Events of a namespace."""
    body = emulator.handle("GET", f"/api/v1/namespaces/{namespace}/events", {}, {}).body
    assert isinstance(body, bytes)
    items: list[Object] = json.loads(body)["items"]
    return items


class Cluster:
    """The Kubernetes emulator with a clock that stands still, and the real client on it."""

    def __init__(self, *, schedule: bool = False) -> None:
        self.clock = ManualClock(NOW)
        self.emulator = Emulator(clock=self.clock, schedule=schedule, chance=repeatable())
        self.api = client(self.emulator, "demo")
        self.emulator.create(NAMESPACES, "", {"metadata": {"name": "team"}})

    def add(self, value: Object) -> Pod:
        """Create a Pod; the view of what was stored."""
        metadata = value["metadata"]
        kept = {key: metadata[key] for key in ("name", "labels", "annotations")}
        namespace = metadata["namespace"]
        self.emulator.create(PODS, namespace, {**value, "metadata": kept})
        return self.read(namespace, metadata["name"])

    def read(self, namespace: str = "team", name: str = "web-0") -> Pod:
        """The Pod as it stands."""
        found = self.api.get_pod(namespace, name)
        assert found is not None
        return Pod.from_object(found)
