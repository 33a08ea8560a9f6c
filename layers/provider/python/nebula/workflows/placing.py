"""One Pod's pass through placement: decide on what is known now, write the claim, tell whom it concerns."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from nebula.domain.candidate import Candidate, Shape
from nebula.domain.claim import Claim, Phase, bounded, claim_id_for
from nebula.events.details import DetailType
from nebula.kubernetes.api import ForbiddenError, KubernetesApi
from nebula.kubernetes.pod import Pod
from nebula.lifecycle.transitions import move
from nebula.placement import deferral
from nebula.placement.engine import PLACED, decide
from nebula.placement.report import decision_lines
from nebula.placement.request import PlacementRequest, ProviderSupply
from nebula.placement.verdict import Decision
from nebula.stores.claims import BudgetExhaustedError
from nebula.workflows.announce import publish_claim
from nebula.workflows.placement_metrics import measure_decision
from nebula.workflows.pod_report import show_condition, show_event
from nebula.workflows.pool_ledger import active_blocks, budget_left, live_claims
from nebula.workflows.services import Services
from nebula.workflows.supply import cluster_supplies
from nebula.workflows.wish import NoWishError, Wish, read_wish

REDRIVE = timedelta(seconds=60)
"""A Placed claim whose event was lost is announced again after this."""

BUDGET_TRIES = 4
"""Decisions in one pass while other placements take the budget; then the claim waits like any other."""

FORGIVE_AFTER = timedelta(minutes=10)
"""A claim that found nothing for this long asks those again that refused it for reasons of its own."""

DEFERRED = "Deferred"

_STEPS = (1, 5, 10)
"""Minutes to the next try, as a Pod shows them."""


class Placing:
    """The pass; raises ``stores.claims.ConflictError`` when somebody else moved the claim meanwhile."""

    def __init__(self, services: Services, api: KubernetesApi, pod: Pod, claim: Claim | None, rejections: int) -> None:
        self._services = services
        self._api = api
        self._pod = pod
        self._claim = claim
        self._rejections = rejections
        self._claim_id = claim_id_for(api.name, pod.uid)
        self._now = services.clock.now()

    def run(self) -> Claim:
        """Place or defer; returns the claim as written."""
        try:
            wish = read_wish(self._api, self._pod)
        except NoWishError as error:
            return self._refused(error)
        supplies = cluster_supplies(self._services, self._api, self._pod, wish.pool, wish.shape)
        return self._decide(wish, supplies)

    def _decide(self, wish: Wish, supplies: tuple[ProviderSupply, ...]) -> Claim:
        """Decide until the ledger takes the candidate: another placement may take the budget first."""
        blocks = active_blocks(self._services.blocks, supplies, self._now)
        live = live_claims(self._services.claims, self._api.name, wish.pool)
        over_budget: set[str] = set()
        tries = 0
        while True:
            request = self._request(wish, frozenset(over_budget))
            decision = decide(request, wish.pool, supplies, blocks, live, self._now)
            if decision.candidate is None:
                return self._deferred(wish, decision)
            try:
                return self._placed(wish, decision, decision.candidate)
            except BudgetExhaustedError:
                tries += 1
                if tries >= BUDGET_TRIES:
                    over_budget.add(decision.candidate.key)

    def _request(self, wish: Wish, over_budget: frozenset[str]) -> PlacementRequest:
        claim = self._claim
        return PlacementRequest(
            shape=wish.shape,
            claim_id=self._claim_id,
            restart_policy=wish.restart_policy,
            publishes=wish.publishes,
            exclusions=frozenset(claim.exclusions) if claim is not None else frozenset(),
            budget_left=budget_left(self._services.claims, self._api.name, wish.pool),
            over_budget=over_budget,
            waiting_since=claim.phase_since if claim is not None else None,
        )

    def _placed(self, wish: Wish, decision: Decision, candidate: Candidate) -> Claim:
        """The candidate into the ledger with its price reserved, then the hint to buy it."""
        written = self._decided(
            Phase.PLACED,
            wish,
            decision,
            limit=wish.pool.budget_per_hour,
            candidate=candidate,
            next_action_at=self._now + REDRIVE,
            reason=PLACED,
            message=decision.message,
            wanted_per_hour=None,
        )
        self._services.telemetry.info(
            "placed", claim_id=written.claim_id, candidate=candidate.key, price_per_hour=str(candidate.price.total)
        )
        publish_claim(self._services, DetailType.CLAIM_PLACED, written)
        return written

    def _deferred(self, wish: Wish, decision: Decision) -> Claim:
        """Why not, and when again, into the ledger; the Pod shows it when it is news."""
        written = self._decided(
            Phase.PENDING,
            wish,
            decision,
            candidate=None,
            next_action_at=self._retry_at(decision),
            reason=decision.reason,
            message=self._with_last_answer(decision.message),
            wanted_per_hour=decision.wanted_per_hour(),
            exclusions=self._exclusions(),
        )
        self._show(written)
        return written

    def _decided(self, phase: Phase, wish: Wish, decision: Decision, **changes: Any) -> Claim:
        """A decision into the ledger, with what it was taken from, and into the figures."""
        written = self._write(
            phase,
            wish.shape,
            node_pool=wish.pool.name,
            node_pool_revision=wish.pool.revision,
            failover=wish.pool.failover,
            decision=decision_lines(decision, self._now),
            rejections=self._rejections,
            **changes,
        )
        measure_decision(self._services.telemetry, decision, written, self._now)
        return written

    def _refused(self, error: NoWishError) -> Claim:
        """A Pod or NodePool that cannot be used: kept Pending, woken by a change, or by time if that may help."""
        since = self._claim.phase_since if self._claim is not None else None
        wait = deferral.backoff(since, self._now) + deferral.jitter(self._claim_id, deferral.SHORTEST)
        written = self._write(
            Phase.PENDING,
            error.shape,
            node_pool=self._pod.node_pool or "",
            node_pool_revision=error.revision,
            candidate=None,
            next_action_at=self._now + wait if error.again else None,
            reason=error.reason,
            message=str(error),
            decision=(),
            rejections=self._rejections,
            wanted_per_hour=None,
        )
        self._services.telemetry.count("PlacementDeferrals", reason=error.reason)
        self._show(written)
        return written

    def _with_last_answer(self, message: str) -> str:
        """The deferral, with what the provider last said to this very Pod: a reason beats a category."""
        attempt = self._claim.attempt if self._claim is not None else None
        return f"{message}; last answer: {attempt.detail}" if attempt is not None and attempt.detail else message

    def _retry_at(self, decision: Decision) -> datetime | None:
        """When again; soon where those that are forgiven now can be asked, whatever the backoff is by then."""
        forgiven = self._claim is not None and self._claim.exclusions != self._exclusions()
        if not forgiven or decision.retry_at is None:
            return decision.retry_at
        return min(decision.retry_at, self._now + deferral.SHORTEST)

    def _exclusions(self) -> tuple[str, ...]:
        """What this claim avoids from here; forgiven when it has waited long, for nothing else may come."""
        claim = self._claim
        if claim is None or self._now - claim.phase_since >= FORGIVE_AFTER:
            return ()
        return claim.exclusions

    def _write(self, phase: Phase, shape: Shape, *, limit: Decimal | None = None, **changes: Any) -> Claim:
        """Create or move the claim; the hash tells later events whether the Pod has changed since."""
        changes |= {"shape": shape, "pod_fields_hash": self._pod.fields_hash(), "message": bounded(changes["message"])}
        if self._claim is None:
            return self._services.claims.create(self._new(phase, **changes), budget_limit=limit)
        moved = move(self._claim, phase, self._now, **changes)
        return self._services.claims.save(self._claim, moved, budget_limit=limit)

    def _new(self, phase: Phase, **fields: Any) -> Claim:
        return Claim(
            claim_id=self._claim_id,
            phase=phase,
            cluster=self._api.name,
            namespace=self._pod.namespace,
            pod_name=self._pod.name,
            pod_uid=self._pod.uid,
            cluster_uid=self._cluster_uid(),
            created_at=self._now,
            updated_at=self._now,
            phase_since=self._now,
            pod_created_at=self._pod.created_at,
            **fields,
        )

    def _cluster_uid(self) -> str:
        """The cluster's identity, which pins the claim to it; a role that may not read it pins nothing."""
        try:
            return self._api.cluster_uid()
        except ForbiddenError as error:
            self._services.telemetry.error("cluster not pinned", cluster=self._api.name, error=str(error))
            return ""

    def _show(self, claim: Claim) -> None:
        """Condition and Event on the Pod, only when the reason is news."""
        before = self._claim
        show_condition(self._services, self._api, self._pod, reason=DEFERRED, message=shown(claim))
        if before is None or (before.reason, before.message) != (claim.reason, claim.message):
            show_event(
                self._services, self._api, self._pod, reason="PlacementDeferred", message=shown(claim), type_="Warning"
            )


def shown(claim: Claim) -> str:
    """A deferral as its Pod shows it: the reason's name, the words, and when the next try is."""
    return f"{claim.reason}: {claim.message}; {_next_try(claim)}"


def _next_try(claim: Claim) -> str:
    """In steps, so that a wait that is about as long as the one before is not news."""
    if claim.next_action_at is None:
        return "next try when the Pod or its NodePool changes"
    minutes = (claim.next_action_at - claim.updated_at).total_seconds() / 60
    step = next((step for step in _STEPS if minutes <= step), None)
    return f"next try within {step} min" if step else f"next try at {claim.next_action_at:%Y-%m-%dT%H:%MZ}"
