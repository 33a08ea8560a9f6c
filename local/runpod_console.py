"""RunPod seen from outside the product: its own API with the account's key, and the simulator's controls."""

from __future__ import annotations

from typing import Any

import requests

from local.deployment import Endpoints

_TIMEOUT_SECONDS = 10


class RunPodConsole:
    """One account of the simulator. What it tells is what would be billed."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._base = endpoints.runpod.removesuffix("/v2")
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {endpoints.runpod_key}"

    def state(self) -> dict[str, Any]:
        """Every pod ever made and every registry credential that is left."""
        found: dict[str, Any] = self._control("GET", "state")
        return found

    def alive(self) -> list[dict[str, Any]]:
        """Pods that are billed."""
        return [pod for pod in self.state()["pods"] if pod["status"] != "TERMINATED"]

    def registries(self) -> list[dict[str, Any]]:
        """Registry credentials that the account keeps."""
        found: list[dict[str, Any]] = self.state()["registries"]
        return found

    def requests(self, method: str, path: str) -> list[dict[str, Any]]:
        """Calls that were made of one method and path, oldest first, with their status."""
        made = self._control("GET", "requests")["requests"]
        return [one for one in made if (one["method"], one["path"]) == (method, path)]

    def set(self, name: str, **body: Any) -> None:
        """Steer the simulator: ``stock``, ``timing``, ``images``, ``latency`` and the like."""
        self._control("PUT", name, body)

    def fail(self, **failure: Any) -> None:
        """Script a failing call."""
        self._control("POST", "failures", failure)

    def _control(self, method: str, name: str, body: dict[str, Any] | None = None) -> Any:
        url = f"{self._base}/_control/{name}"
        response = self._session.request(method, url, json=body, timeout=_TIMEOUT_SECONDS)
        response.raise_for_status()
        return response.json() if response.content else None
