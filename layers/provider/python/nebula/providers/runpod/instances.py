"""RunPod's Pod object to our ``Instance``."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import Any

from nebula.clock import parse_time
from nebula.domain.instance import Instance, InstanceState
from nebula.providers.runpod.marks import from_environment

# EXITED covers a user's stop and any other end alike; what a finished or crashed command reads in v2,
# and whether a failed pull reaches ERROR, is unknown. A word that is not here stays pending.
STATES = {
    "PROVISIONING": InstanceState.PENDING,
    "STARTING": InstanceState.PENDING,
    "RUNNING": InstanceState.RUNNING,
    "EXITED": InstanceState.EXITED,
    "ERROR": InstanceState.FAILED,
    "TERMINATED": InstanceState.TERMINATED,
}
_COST_DECIMALS = 10
_REACHABLE = frozenset({InstanceState.PENDING, InstanceState.RUNNING})


def to_instance(pod: Mapping[str, Any]) -> Instance:
    """Read a Pod object that has an id; anything else in it may be missing or of a wrong type."""
    status = _text(pod.get("status")).upper()
    state = STATES.get(status, InstanceState.PENDING)
    environment = pod.get("env")
    mark = from_environment(environment) if isinstance(environment, dict) else None
    return Instance(
        id=pod["id"],
        name=_text(pod.get("name")),
        mark=mark,
        state=state,
        provider_state=status[:64],
        instance_type=_text(_member(pod, "gpu", "id")) or _text(_member(pod, "cpu", "id")),
        region=_text(pod.get("dataCenterId")),
        cost_per_hour=_money(pod.get("cost")),
        endpoint=endpoint(pod) if mark is not None and state in _REACHABLE else None,
        created_at=parse_time(pod.get("createdAt")),
        started_at=parse_time(pod.get("startedAt")),
    )


def endpoint(pod: Mapping[str, Any]) -> str | None:
    """Where callers reach it: only through a port that was published at create (``ports``).

    The proxy URL of the first http port (RunPod docs, "Expose ports"), known from the id alone; else
    the public ``ip:port`` of the first tcp port that has one, known some time after boot. Addresses in
    ``runtime.ports`` of http ports belong to RunPod's inner network and are never shown.
    """
    published = [_port(one) for one in _list(pod.get("ports"))]
    for port, kind in (one for one in published if one is not None):
        if kind == "http":
            return f"https://{pod['id']}-{port}.proxy.runpod.net"
    mapped = _public_addresses(_list(_member(pod, "runtime", "ports")))
    return next((mapped[one[0]] for one in published if one is not None and one[1] == "tcp" and one[0] in mapped), None)


def _public_addresses(ports: Iterable[Any]) -> dict[int, str]:
    found: dict[int, str] = {}
    for one in ports:
        if not isinstance(one, dict) or one.get("type") != "tcp":
            continue
        private, public, address = one.get("private"), one.get("public"), one.get("ip")
        if isinstance(private, int) and _is_port(private) and _is_port(public) and _is_public(address):
            found.setdefault(private, f"[{address}]:{public}" if ":" in str(address) else f"{address}:{public}")
    return found


def _is_public(address: Any) -> bool:
    try:
        return isinstance(address, str) and ipaddress.ip_address(address).is_global
    except ValueError:
        return False


def _is_port(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= 65535


def _port(text: Any) -> tuple[int, str] | None:
    number, _, kind = text.partition("/") if isinstance(text, str) else ("", "", "")
    if not (number.isascii() and number.isdigit() and len(number) <= 5):
        return None
    return int(number), kind.lower()


def _member(pod: Mapping[str, Any], outer: str, inner: str) -> Any:
    content = pod.get(outer)
    return content.get(inner) if isinstance(content, dict) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value[:256] if isinstance(value, str) else ""


def _money(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    try:
        amount = Decimal(value)
    except InvalidOperation:
        return None
    if not (amount.is_finite() and 0 <= amount < 1_000_000):
        return None
    # A ledger row takes 38 digits and refuses to round by itself.
    finer = int(amount.as_tuple().exponent) < -_COST_DECIMALS
    return amount.quantize(Decimal(1).scaleb(-_COST_DECIMALS), ROUND_CEILING) if finer else amount
