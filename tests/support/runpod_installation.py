"""A whole installation whose provider is the real RunPod one, on the simulator: for scenarios of field reports."""

from __future__ import annotations

import json
from typing import Any

from nebula.http import HttpClient, Limits
from nebula.observability import MemoryTelemetry
from nebula.providers.runpod import build
from pydantic import SecretStr

from local.kubernetes.resources import SECRETS
from local.runpod import Simulator
from local.runpod.adapter import BASE_URL, client_session
from tests.support.lending import docker_config, pull_secret
from tests.support.pods import events_of
from tests.support.world import World, pod_object, pool_object

REGISTRY = "registry.example.com"
USER, PASSWORD = "canary-user", "canary-password"
Object = dict[str, Any]


class RunPodInstallation(World):
    """``World`` with RunPod instead of the simulated provider; ``spec`` goes into its NodePool."""

    def __init__(self, **spec: Any) -> None:
        super().__init__(pool=pool_object("runpod", **spec))
        self.simulator = Simulator(self.clock.now)
        self.account = self.simulator.account
        http = HttpClient(
            client_session(self.simulator),
            limits=Limits(),
            sleep=lambda _: None,
            monotonic=lambda: self.clock.now().timestamp(),
        )
        provider = build(
            api_key=SecretStr("rpa_test"), base_url=BASE_URL, clock=self.clock, telemetry=MemoryTelemetry(), http=http
        )
        self.providers._providers = {"runpod": provider}
        self.providers.keys = {"runpod": "key-1"}

    def calls(self, method: str, path: str) -> list[Object]:
        """The bodies of the calls to a path, in order."""
        made = [one for one in self.account.requests if (one.method, one.path) == (method, path)]
        return [json.loads(one.body) if one.body else {} for one in made]

    def created(self) -> Object:
        """The body of the only create."""
        (body,) = self.calls("POST", "/v2/pods")
        return body

    def alive(self) -> list[str]:
        """Ids of what is billed."""
        return [record.id for record in self.account.alive()]


def put_secret(world: World, name: str, value: Object, namespace: str = "default") -> None:
    """Apply a Secret (type and data as the API gives them)."""
    kept = {key: item for key, item in value.items() if key != "metadata"}
    world.emulator.create(SECRETS, namespace, {"metadata": {"name": name}, **kept})


def put_login(world: World, *entries: tuple[str, str, str], name: str = "login", legacy: bool = False) -> None:
    """Apply a pull Secret over (registry, user, password) triples; one for ``REGISTRY`` without any."""
    config = docker_config(*(entries or ((REGISTRY, USER, PASSWORD),)))
    put_secret(world, name, pull_secret(config["auths"] if legacy else config, legacy=legacy))


def with_image(image: str, *secrets: str, **spec: Any) -> Object:
    """Changes for ``World.create_pod``: an image and the pull Secrets that it names."""
    (main,) = pod_object()["spec"]["containers"]
    return {"containers": [{**main, "image": image}], "imagePullSecrets": [{"name": name} for name in secrets], **spec}


def with_container(**fields: Any) -> Object:
    """Changes for ``World.create_pod``: fields of its one container."""
    (main,) = pod_object()["spec"]["containers"]
    return {"containers": [{**main, **fields}]}


def events(world: World, reason: str) -> list[Object]:
    """Events on Pods of the default namespace with a reason."""
    return [event for event in events_of(world.emulator, "default") if event["reason"] == reason]


def condition(pod: Object | None, type_: str = "nebula.inftyai.com/Released") -> Object:
    """A condition of a Pod; an empty object when it has none."""
    found = [] if pod is None else pod.get("status", {}).get("conditions") or []
    return next((item for item in found if item["type"] == type_), {})
