"""The worker's forwarder: lists the local cluster's Pods and NodePools and puts what changed on the bus."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import requests
from botocore.exceptions import BotoCoreError, ClientError
from nebula.kubernetes import names

from local.aws import client
from local.deployment import Endpoints

logger = logging.getLogger(__name__)

_INTERVAL_SECONDS = 0.1
_TIMEOUT_SECONDS = 5
_ENTRIES = 10
_PODS = "/api/v1/pods"
_POOLS = "/apis/nebula.inftyai.com/v1alpha1/nodepools"

Seen = dict[str, dict[str, Any]]
Hint = tuple[str, dict[str, Any]]


def forward_events(bus: str, endpoints: Endpoints) -> None:
    """Forward until the process ends. What could not be sent is sent after the next look."""
    session = requests.Session()
    session.trust_env = False
    session.headers["Authorization"] = f"Bearer {endpoints.cluster_token}"
    events = client("events", endpoints)
    pods: Seen = {}
    pools: Seen = {}
    while True:
        try:
            pods_now = _list(session, endpoints.kubernetes + _PODS, labelSelector=names.ENABLED_SELECTOR)
            pools_now = _list(session, endpoints.kubernetes + _POOLS)
            _send(events, bus, endpoints.cluster, [*pod_hints(pods, pods_now), *pool_hints(pools, pools_now)])
            pods, pools = pods_now, pools_now
        except (requests.RequestException, ClientError, BotoCoreError) as error:
            logger.warning("cannot forward: %s", type(error).__name__)
        time.sleep(_INTERVAL_SECONDS)


def pod_hints(before: Seen, after: Seen) -> Iterator[Hint]:
    """What is new about Pods: gated, changed, being deleted, gone."""
    for uid, pod in after.items():
        old = before.get(uid)
        if old is None or old["metadata"]["resourceVersion"] != pod["metadata"]["resourceVersion"]:
            yield _pod_type(old, pod), pod
    for uid, pod in before.items():
        if uid not in after:
            yield "Pod Deleted", pod


def pool_hints(before: Seen, after: Seen) -> Iterator[Hint]:
    """NodePools whose spec is new, or that are gone."""
    for uid, pool in after.items():
        if uid not in before or before[uid]["spec"] != pool["spec"]:
            yield "NodePool Changed", pool
    yield from (("NodePool Changed", pool) for uid, pool in before.items() if uid not in after)


def _pod_type(old: dict[str, Any] | None, pod: dict[str, Any]) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return "Pod Deleted"
    gated = any(gate["name"] == names.GATE for gate in pod["spec"].get("schedulingGates") or [])
    return "Pod Gated" if gated and old is None else "Pod Changed"


def _list(session: requests.Session, url: str, **query: str) -> Seen:
    response = session.get(url, params=query, timeout=_TIMEOUT_SECONDS)
    response.raise_for_status()
    return {item["metadata"]["uid"]: item for item in response.json()["items"]}


def _send(events: Any, bus: str, cluster: str, hints: list[Hint]) -> None:
    entries = [
        {
            "Source": "nebula.kubernetes",
            "DetailType": kind,
            "EventBusName": bus,
            "Detail": json.dumps(_detail(cluster, obj["metadata"])),
        }
        for kind, obj in hints
    ]
    for start in range(0, len(entries), _ENTRIES):
        events.put_events(Entries=entries[start : start + _ENTRIES])


def _detail(cluster: str, metadata: dict[str, Any]) -> dict[str, Any]:
    detail = {"schema_version": 1, "cluster": cluster, "name": metadata["name"]}
    if "namespace" not in metadata:
        return detail
    pod = {"namespace": metadata["namespace"], "uid": metadata["uid"], "resource_version": metadata["resourceVersion"]}
    return detail | pod
