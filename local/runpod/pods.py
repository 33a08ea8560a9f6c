"""Pods over time: what was asked, what state that is in by now, and how RunPod shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from local.runpod.market import Place
from local.runpod.wire import ProblemError

LEGAL = {
    "PROVISIONING": ("stop", "terminate"),
    "STARTING": ("stop", "terminate"),
    "RUNNING": ("stop", "restart", "terminate"),
    "EXITED": ("start", "terminate"),
    "ERROR": ("start", "terminate"),
    "TERMINATED": (),
}


@dataclass
class Timing:
    """How long a pod stays in each state, and the delays of what is shown."""

    provisioning: timedelta = timedelta(seconds=1)
    starting: timedelta = timedelta(seconds=1)
    ports: timedelta = timedelta(seconds=1)
    visible: timedelta = timedelta(0)


@dataclass
class PodRecord:
    """One pod. ``forced`` states win over the timeline; ``stuck`` keeps it in STARTING (an image that never comes)."""

    id: str
    number: int
    content: dict[str, Any]
    place: Place
    units: int
    price: float
    created_at: datetime
    timing: Timing
    stuck: str = ""
    forced: str = ""
    forced_at: datetime | None = None
    terminated_at: datetime | None = None
    hidden: frozenset[str] = frozenset()
    lines: list[tuple[str, str]] = field(default_factory=list)

    def status(self, now: datetime) -> str:
        """The state by now; any word may be forced, known or not."""
        if self.terminated_at is not None:
            return "TERMINATED"
        if self.forced:
            return self.forced
        age = now - self.created_at
        if age < self.timing.provisioning:
            return "PROVISIONING"
        if age < self.timing.provisioning + self.timing.starting or self.stuck:
            return "STARTING"
        return "RUNNING"

    def force(self, status: str, now: datetime) -> None:
        """Put it into a state by hand."""
        self.forced, self.forced_at = status, now

    def act(self, action: str, now: datetime) -> None:
        """Stop, start or restart; 409 where the state does not allow it."""
        if action not in LEGAL.get(self.status(now), ()):
            raise ProblemError(409, f"cannot {action} a pod that is {self.status(now)}")
        if action == "stop":
            self.force("EXITED", now)
        else:
            self.forced = ""
            self.created_at = now - self.timing.provisioning if action == "restart" else now

    def visible(self, now: datetime) -> bool:
        """Whether lists show it: not before its delay, never after its end."""
        return self.terminated_at is None and now >= self.created_at + self.timing.visible

    def render(self, now: datetime) -> dict[str, Any]:
        """The Pod object of the OpenAPI document, with the newer members, without the ``hidden`` ones."""
        status = self.status(now)
        running = status == "RUNNING"
        shown = {
            "id": self.id,
            "name": self.content["name"],
            "status": status,
            "actions": list(LEGAL.get(status, ())),
            "image": self.content["image"],
            "args": self.content.get("args", ""),
            "entrypoint": self.content.get("entrypoint"),
            "cmd": self.content.get("cmd"),
            "disk": self.content["disk"],
            "mounts": {},
            "ports": self.content.get("ports", []),
            "env": self.content.get("env", {}),
            "registry": self.content.get("registry"),
            "cloud": self.content.get("cloud", "SECURE"),
            "dataCenterId": None if status == "PROVISIONING" else self.place[1],
            "cudaVersion": None,
            "ssh": {"proxy": None, "direct": None},
            "template": None,
            "cost": 0.0 if status in ("EXITED", "TERMINATED") else self.price,
            "locked": False,
            "runtime": self._runtime(now) if running else None,
            "createdAt": _stamp(self.created_at),
            "startedAt": _stamp(self._running_since()) if running else None,
            "globalNetworking": {"enabled": False},
        } | self._hardware()
        return {member: value for member, value in shown.items() if member not in self.hidden}

    def _hardware(self) -> dict[str, Any]:
        if "gpu" in self.content:
            gpu = self.content["gpu"]
            return {"gpu": {"id": gpu["id"], "count": gpu.get("count", 1)}}
        cpu = self.content["cpu"]
        return {"cpu": {**cpu, "memory": cpu["vcpuCount"] * 2}}

    def _running_since(self) -> datetime:
        return self.forced_at or self.created_at + self.timing.provisioning + self.timing.starting

    def _runtime(self, now: datetime) -> dict[str, Any]:
        up = now - self._running_since()
        ports = [self._port(one) for one in self.content.get("ports", [])] if up >= self.timing.ports else []
        return {"uptime": int(up.total_seconds()), "gpus": [], "ports": ports}

    def _port(self, text: str) -> dict[str, Any]:
        number, _, kind = text.partition("/")
        if kind == "http":
            return {"private": int(number), "public": 60000 + self.number % 5000, "type": "http", "ip": "100.65.0.101"}
        return {"private": int(number), "public": 20000 + self.number % 40000, "type": "tcp", "ip": "195.26.233.3"}


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
