"""The demo's second act: a password is rotated while a Pod that was pulled with the old one runs on.

The operator's own command (``make credentials``) is asked before and after, and RunPod's own list is believed.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
from collections.abc import Iterator
from typing import Any

from cli.__main__ import main as command
from cli.installation import FUNCTION
from cli.table import columns
from local.kubectl import Kubectl
from local.runpod_console import RunPodConsole
from local.stack import Stack
from local.timeline import Timeline

NEW_PASSWORD = "not-a-real-password-either"  # noqa: S105 - of a registry that does not exist
_SHOWN = ("provider_id", "user", "state", "live_workloads", "next_action", "reason")
_HEADERS = ("id", "user", "state", "live", "next", "why")


class Rotation:
    """One image's login, changed in its Secret and at its registry, and what becomes of what was lent."""

    def __init__(self, stack: Stack, timeline: Timeline) -> None:
        self._stack = stack
        self._timeline = timeline
        self._kubectl = Kubectl(stack.endpoints)
        self._console = RunPodConsole(stack.endpoints)
        self.old: frozenset[str] = frozenset()

    def rotate(self, secret: str, image: str) -> None:
        """Put a new password where the old one was; the registry takes only the new one from now on."""
        self.old = self.lent()
        found = self._kubectl.get("Secret", secret)
        if found is None:
            raise LookupError(f"no Secret {secret}")
        config = json.loads(base64.b64decode(found["data"][".dockerconfigjson"]))
        ((registry, entry),) = config["auths"].items()
        config["auths"] = {registry: {"username": entry["username"], "password": NEW_PASSWORD}}
        text = base64.b64encode(json.dumps(config).encode()).decode()
        self._kubectl.replace(found | {"data": {".dockerconfigjson": text}})
        self._console.set("images", private={image: (entry["username"], NEW_PASSWORD)})
        self._timeline.say("registry", "rotated", f"Secret {secret} and {registry} have a new password")

    def lent(self) -> frozenset[str]:
        """Ids of the registry credentials that RunPod keeps now."""
        return frozenset(registry["id"] for registry in self._console.registries())

    def used_by(self, instance_id: str) -> str | None:
        """Id of the credential that RunPod pulled an instance's image with."""
        pods = {pod["id"]: pod for pod in self._console.state()["pods"]}
        used: str | None = pods[instance_id]["registry"]
        return used

    def show(self, when: str) -> str:
        """Say what ``make credentials`` tells now; returns the whole of it."""
        text = self._asked()
        lines = json.loads(text)["lines"]
        shown = [tuple(str(line[name] or "-") for name in _SHOWN) for line in lines]
        self._timeline.say("registry", "ledger", f"make credentials, {when}:")
        for line in columns([_HEADERS, *shown]):
            self._timeline.say("", "", line, "quiet")
        return text

    def _asked(self) -> str:
        deployed = self._stack.worker.deployment.function("credential_retirement").environment
        settings = self._stack.directory / "operator.json"
        settings.write_text(json.dumps({FUNCTION: {**self._stack.endpoints.client_environment(), **deployed}}))
        said = io.StringIO()
        with _environment_kept(), contextlib.redirect_stdout(said):
            status = command(["credentials", "--env-file", str(settings), "--output", "json"])
        if status != 0:
            raise RuntimeError(f"make credentials ended with {status}")
        return said.getvalue()


@contextlib.contextmanager
def _environment_kept() -> Iterator[None]:
    """The command reads the installation's settings from its environment, which is this process's own."""
    before: dict[str, Any] = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
