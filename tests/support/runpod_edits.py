"""RunPod's answers, edited on their way: what a newer API, a proxy or a bad day may make of a Pod object."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from local.runpod.simulator import Simulator
from local.runpod.wire import Response

Object = dict[str, Any]


def edit_pods(simulator: Simulator, edit: Callable[[Object], None]) -> None:
    """Let ``edit`` change every Pod object of every answer from now on, in lists and single ones."""
    inner = simulator.handle

    def handle(*call: Any) -> Response:
        answer = inner(*call)
        content = json.loads(answer.body) if answer.body else None
        if not isinstance(content, dict):
            return answer
        for pod in content.get("pods", [content]):
            if isinstance(pod, dict) and "env" in pod:
                edit(pod)
        return answer._replace(body=json.dumps(content).encode())

    simulator.handle = handle  # type: ignore[method-assign]
