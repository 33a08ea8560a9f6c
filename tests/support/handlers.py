"""The functions' own handlers over the edges of a ``World``: what SQS and EventBridge hand to them."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from nebula.events.details import PodDetail
from nebula.settings import RetirementSettings, SweepSettings
from nebula.workflows.services import Services

from tests.support.world import CLUSTER, World

ROOT = Path(__file__).parents[2]
Object = dict[str, Any]
CONTEXT = SimpleNamespace(get_remaining_time_in_millis=lambda: 60_000)
_SETTINGS: Mapping[str, Callable[[], object]] = {
    "status_polling": lambda: SweepSettings.model_construct(reap_orphans="terminate"),
    "credential_retirement": lambda: RetirementSettings.model_construct(),
}


def module(function: str) -> ModuleType:
    """A fresh import of a function's ``app``."""
    spec = importlib.util.spec_from_file_location(f"handler_of_{function}", ROOT / "functions" / function / "app.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def handler(function: str, world: World) -> Callable[..., Object]:
    """``handler(event, context=CONTEXT)`` of a function, with the world's edges in place of AWS."""
    loaded: Any = module(function)

    def services() -> Services:
        return world.services(function)

    loaded.services = services
    if function in _SETTINGS:
        loaded.settings = _SETTINGS[function]

    def call(event: object, context: object = CONTEXT) -> Object:
        answer: Object = loaded.handler(event, context)
        return answer

    return call


def batch(*events: Object | str) -> Object:
    """An SQS batch; message ids are ``m0``, ``m1`` …"""
    bodies = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return {
        "Records": [
            {"messageId": f"m{n}", "eventSource": "aws:sqs", "body": body, "attributes": {}, "messageAttributes": {}}
            for n, body in enumerate(bodies)
        ]
    }


def failed(answer: Object) -> list[str]:
    """The message ids that come again."""
    return [item["itemIdentifier"] for item in answer["batchItemFailures"]]


def about_pod(detail_type: str, pod: Object) -> Object:
    """The forwarder's event about a Pod, as it is on the bus."""
    meta = pod["metadata"]
    detail = PodDetail(cluster=CLUSTER, namespace=meta.get("namespace", "default"), name=meta["name"], uid=meta["uid"])
    return {"source": "nebula.kubernetes", "detail-type": detail_type, "detail": detail.model_dump(mode="json")}


def outcomes(world: World) -> list[tuple[str, str]]:
    """(detail-type, outcome) of every line about an event that was handled."""
    return [(f["detail_type"], f["outcome"]) for _, message, f in world.telemetry.lines if message == "event handled"]
