"""RunPod's answers, edited on their way: what a newer API, a proxy or a bad day may make of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from local.runpod.simulator import Simulator
from local.runpod.wire import Response

Object = dict[str, Any]


def edit_answers(simulator: Simulator, edit: Callable[[str, str, Response], Response]) -> None:
    """Let ``edit`` (method, path, answer) change every answer from now on."""
    inner = simulator.handle

    def handle(*call: Any) -> Response:
        return edit(call[0], call[1], inner(*call))

    simulator.handle = handle  # type: ignore[assignment, method-assign]


def edit_pods(simulator: Simulator, edit: Callable[[Object], None]) -> None:
    """Let ``edit`` change every Pod object of every answer from now on, in lists and single ones."""

    def changed(_method: str, _path: str, answer: Response) -> Response:
        content = json.loads(answer.body) if answer.body else None
        if not isinstance(content, dict):
            return answer
        for pod in content.get("pods", [content]):
            if isinstance(pod, dict) and "env" in pod:
                edit(pod)
        return answer._replace(body=json.dumps(content).encode())

    edit_answers(simulator, changed)


def edit_lists(simulator: Simulator, edit: Callable[[Object], None]) -> None:
    """Let ``edit`` change every list of Pods from now on."""

    def changed(method: str, path: str, answer: Response) -> Response:
        if (method, path) != ("GET", "/v2/pods") or answer.status != 200:
            return answer
        content = json.loads(answer.body)
        edit(content)
        return answer._replace(body=json.dumps(content).encode())

    edit_answers(simulator, changed)
