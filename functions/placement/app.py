"""Placement: reads a gated Pod and its NodePool, chooses a candidate or says why not (docs/placement.md)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import nebula.cold_start  # noqa: F401 - before all that is large
from nebula.events.batch import LambdaContext, handle, outcome_of
from nebula.events.details import ClaimDetail, DetailType, ExplainDetail, NodePoolDetail, PodDetail
from nebula.events.envelope import Envelope, MalformedEventError, parse_envelope
from nebula.kubernetes.batch_reads import BatchClusters
from nebula.settings import Settings
from nebula.wiring import build
from nebula.workflows.explain import explain_pod
from nebula.workflows.place import node_pool_changed, place_claim, place_pod
from nebula.workflows.services import Services

_POD_EVENTS = frozenset({DetailType.POD_GATED, DetailType.POD_CHANGED})
#: No further Pod of a batch is begun with less than this share of the time: 5 of 30 s.
RESERVED_SHARE = 1 / 6
_CLAIM_EVENTS = frozenset({DetailType.CLAIM_DUE, DetailType.PROVISION_REJECTED})


@cache
def services() -> Services:
    """The edges of this function, built on its first event and kept while it is warm."""
    return build("placement", Settings())


def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    """Take an SQS batch or one bare event; an ``Explain`` event answers with the candidate table."""
    if isinstance(event, dict) and event.get("detail-type") == DetailType.EXPLAIN:
        asked = parse_envelope(event).read(ExplainDetail)
        return explain_pod(services(), asked.pod, asked.node_pool, asked.cluster)
    whole = services()
    batch = replace(whole, clusters=BatchClusters(whole.clusters, whole.clock))
    return handle(event, partial(_act, batch), whole.telemetry, context=context, reserve=RESERVED_SHARE)


def _act(batch: Services, envelope: Envelope) -> str:
    if envelope.detail_type in _POD_EVENTS:
        pod = envelope.read(PodDetail)
        return outcome_of(place_pod(batch, pod.cluster, pod.namespace, pod.name, pod.uid))
    if envelope.detail_type in _CLAIM_EVENTS:
        claim = envelope.read(ClaimDetail)
        due = envelope.detail_type == DetailType.CLAIM_DUE
        return outcome_of(place_claim(batch, claim.claim_id, due=due))
    if envelope.detail_type == DetailType.NODEPOOL_CHANGED:
        pool = envelope.read(NodePoolDetail)
        return f"{node_pool_changed(batch, pool.cluster, pool.name)} claims woken"
    raise MalformedEventError("detail-type: not one that placement is woken by")
