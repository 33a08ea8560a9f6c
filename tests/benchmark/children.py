"""The processes of an engine-only run besides the installation: the cluster and its forwarder."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any

from nebula.clock import SystemClock
from nebula.events.entries import envelope_of
from nebula.events.envelope import Event
from nebula.kubernetes.transport import StaticToken, Transport, new_session
from pydantic import SecretStr

from cluster.forwarder.service import Forwarder
from local.kubernetes.http_server import KubernetesServer
from local.kubernetes.resources import NODE_POOLS
from local.kubernetes.server import Emulator

CLUSTER = "bench"
TOKEN = "bench"
POOL = "pool"


def pool_object(provider: str) -> dict[str, Any]:
    """The NodePool of a run: one provider, one tier."""
    return {
        "apiVersion": "nebula.inftyai.com/v1alpha1",
        "kind": "NodePool",
        "metadata": {"name": POOL},
        "spec": {"providers": [{"name": provider}], "capacityTypes": ["OnDemand"]},
    }


def pod_object(name: str) -> dict[str, Any]:
    """A gated Pod of one container, as the published harness has them, that asks for one H100."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {
                "nebula.inftyai.com/enabled": "true",
                "nebula.inftyai.com/nodepool": POOL,
                "nebula.inftyai.com/accelerator-type": "h100",
            },
        },
        "spec": {
            "restartPolicy": "Always",
            "schedulingGates": [{"name": "nebula.inftyai.com/provider-selection"}],
            "containers": [
                {
                    "name": "main",
                    "image": "registry.k8s.io/pause:3.10",
                    "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}},
                }
            ],
        },
    }


def cluster() -> Callable[[str], Any]:
    """The Kubernetes emulator over HTTP on loopback; answers ``url`` and ``calls``."""
    emulator = Emulator()
    emulator.create(NODE_POOLS, "", pool_object("simulated"))
    server = KubernetesServer(emulator).start()

    def answer(question: str) -> Any:
        return server.url if question == "url" else Counter(emulator.calls)

    return answer


class _Pipe:
    """A publisher whose bus is at the other end of a pipe."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = Lock()
        self._clock = SystemClock()

    def publish(self, events: Sequence[Event]) -> None:
        """See ``Publisher``."""
        now = self._clock.now()
        with self._lock:
            self._pipe.send([envelope_of(event, event_id="0", time=now) for event in events])


def forwarder(url: str, pipe: Connection) -> Callable[[str], Any]:
    """The forwarder that runs in clusters, followed by nobody but the bus."""
    transport = Transport(url, StaticToken(SecretStr(TOKEN)), new_session())
    threading.Thread(target=Forwarder(CLUSTER, transport, _Pipe(pipe)).run, daemon=True).start()
    return lambda _question: None
