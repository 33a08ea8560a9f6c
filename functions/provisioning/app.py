"""Provisioning: creates, adopts, releases and gives back instances."""

from __future__ import annotations

from functools import cache
from typing import Any

import nebula.cold_start  # noqa: F401 - before all that is large
from nebula.domain.claim import Phase
from nebula.events.batch import LambdaContext, handle, outcome_of
from nebula.events.details import ClaimDetail, DetailType, PodDetail
from nebula.events.envelope import Envelope, MalformedEventError
from nebula.settings import Settings
from nebula.wiring import build
from nebula.workflows.interruption import INTERRUPTION_TYPES, interrupted
from nebula.workflows.provision import provision_claim
from nebula.workflows.services import Services
from nebula.workflows.terminate import pod_deleted, reclaim_claim

_CREATE_EVENTS = frozenset({DetailType.CLAIM_PLACED, DetailType.INSTANCE_READY, DetailType.CLAIM_DUE})
#: No further ending of a batch is begun with less than this share of the time, 60 of 90 s: a delete and the read after
#: it may both hang.
RESERVED_SHARE = 2 / 3
_RECLAIM_PHASES = frozenset({Phase.WITHDRAWING, Phase.TERMINATING})


@cache
def services() -> Services:
    """The edges of this function, built on its first event and kept while it is warm."""
    return build("provisioning", Settings())


def handler(event: object, context: LambdaContext) -> dict[str, Any]:
    """Take an SQS batch or one bare event."""
    return handle(event, _act, services().telemetry, context=context, reserve=RESERVED_SHARE)


def _act(envelope: Envelope) -> str:
    if envelope.detail_type == DetailType.POD_DELETED:
        pod = envelope.read(PodDetail)
        return outcome_of(pod_deleted(services(), pod.cluster, pod.namespace, pod.name, pod.uid))
    if envelope.detail_type in _CREATE_EVENTS:
        claim = envelope.read(ClaimDetail)
        leaving = claim.phase in _RECLAIM_PHASES
        return outcome_of((reclaim_claim if leaving else provision_claim)(services(), claim.claim_id))
    if envelope.detail_type in INTERRUPTION_TYPES:
        return outcome_of(interrupted(services(), envelope))
    raise MalformedEventError("detail-type: not one that provisioning is woken by")
