"""From a placed claim to an instance that exists: the only place that buys anything.

Order is the whole point: checks, credential row, lease and attempt in the ledger, provider call,
instance id in the ledger, release. A crash after any step is found by ``due`` and taken up from there.
"""

from __future__ import annotations

from datetime import datetime

from nebula.domain.claim import AttemptOutcome, Claim, Phase
from nebula.domain.instance import Instance, InstanceState
from nebula.kubernetes.api import KubernetesError
from nebula.lifecycle.observation import ABSENCE_GAP, absence_proved, dead
from nebula.lifecycle.transitions import (
    MAX_UNKNOWN_OUTCOMES,
    OUTCOME_UNKNOWN,
    absent,
    created,
    move,
    take_lease,
    with_attempt,
)
from nebula.providers.base import Provider, ProvisionRequest
from nebula.providers.errors import ImagePullError, ProviderError, ProviderUnavailableError
from nebula.stores.claims import ConflictError
from nebula.workflows.accounts import account_of, is_of
from nebula.workflows.image_wait import pull_secrets_version
from nebula.workflows.pod_report import show_waiting
from nebula.workflows.preparation import NotReadyError, Preparation, prepare, show_provisioning, take_back_dear
from nebula.workflows.pull_choice import go_on_with_next
from nebula.workflows.rejection import give_up_unknown, not_sent, pass_over, pause_of, reject, standing_blocks, wait_out
from nebula.workflows.release import release
from nebula.workflows.services import Services
from nebula.workflows.terminate import reclaim


def provision_claim(services: Services, claim_id: str) -> Claim | None:
    """Take a claim as far as it goes now; returns it as written, None when there is none.

    Raises ``ClusterUnavailableError`` (the message comes again) and nothing for provider faults:
    those are states. A delivery inside a live lease does nothing.
    """
    claim = services.claims.get(claim_id)
    if claim is None:
        services.telemetry.warning("no such claim", claim_id=claim_id)
        return None
    try:
        return _advance(services, claim)
    except ConflictError:
        services.telemetry.info("claim moved meanwhile", claim_id=claim_id)
        return services.claims.get(claim_id)


def _advance(services: Services, claim: Claim) -> Claim:
    if claim.phase is Phase.PLACED:
        return _begin(services, claim)
    if claim.phase is Phase.PROVISIONING and not _leased(claim, services.clock.now()):
        return _recover(services, claim)
    if claim.phase in (Phase.PROVISIONED, Phase.RELEASING) and not _leased(claim, services.clock.now()):
        return release(services, claim) if _may_release(services, claim) else claim
    return claim


def _may_release(services: Services, claim: Claim) -> bool:
    """Whether the instance will not be refused any more: where a provider queues, it must have been seen running.

    Whatever woke us, an event that came twice or a deadline: the status loop announces it once it runs, and
    takes back what never does, or is dead: its Pod still waits for another one.
    """
    seen = claim.observation
    if claim.phase is Phase.RELEASING or seen.state is InstanceState.RUNNING:
        return True
    if dead(seen.state, seen.exit_code):
        return False
    try:
        return not services.providers.get(claim.attempts[-1].candidate.provider).capabilities.queues
    except ProviderError:
        return False


def _leased(claim: Claim, now: datetime) -> bool:
    return claim.attempt is not None and now < claim.attempt.lease_until


def _begin(services: Services, claim: Claim) -> Claim:
    """Checks, then the lease, then the create. A throttled provider is not asked for anybody.

    Nor is one asked for what it has refused to another Pod since this one was placed.
    """
    blocks = standing_blocks(services, claim)
    paused = pause_of(blocks)
    if paused is not None:
        return wait_out(services, claim, paused)
    if blocks:
        return pass_over(services, claim, blocks)
    try:
        prepared = prepare(services, claim)
    except NotReadyError as not_ready:
        return not_ready.apply(services, claim)
    leased = services.claims.save(
        claim,
        take_lease(
            claim,
            services.clock.now(),
            services.lease,
            pod_fields_hash=prepared.pod.fields_hash(),
            credential_key=str(prepared.choice.key) if prepared.choice.key else None,
            account=prepared.account,
        ),
    )
    return _create(services, leased, prepared)


def _create(services: Services, claim: Claim, prepared: Preparation) -> Claim:
    try:
        credential_id = prepared.ensure_credential(services)
    except ProviderUnavailableError as error:
        waiting = not_sent(services, claim, error)
        prepared.report_rejection(services, waiting)
        return waiting
    except ProviderError as error:
        return _refused(services, claim, prepared, error)
    request = ProvisionRequest(
        mark=claim.mark(services.installation),
        name=prepared.instance_name,
        candidate=claim.attempts[-1].candidate,
        workload=prepared.workload,
        registry_credential_id=credential_id,
        secrets=() if prepared.choice.pull is None else (prepared.choice.pull.username, prepared.choice.pull.password),
    )
    provider = prepared.provider
    try:
        instance = provider.provision(request)
    except ProviderUnavailableError as error:
        prepared.forget_credential(services)
        return _after_unknown(services, claim, prepared, error)
    except ProviderError as error:
        prepared.forget_credential(services)
        return _refused(services, claim, prepared, error)
    services.telemetry.info(
        "instance created",
        claim_id=claim.claim_id,
        provider=provider.name,
        instance_id=instance.id,
        instance_type=instance.instance_type,
    )
    written = _adopt(services, claim, provider, instance, prepared)
    if written.phase is Phase.PROVISIONED:
        show_provisioning(services, prepared, written)
    return written


def _refused(services: Services, claim: Claim, prepared: Preparation, error: ProviderError) -> Claim:
    if isinstance(error, ImagePullError) and prepared.choice.another:
        return _begin(services, go_on_with_next(services, claim, prepared.choice, error))
    secrets = _pull_secrets(services, prepared) if isinstance(error, ImagePullError) else ""
    rejected = reject(services, claim, error, prepared.pool, pull_secrets=secrets)
    prepared.report_rejection(services, rejected)
    return rejected


def _pull_secrets(services: Services, prepared: Preparation) -> str:
    try:
        return pull_secrets_version(prepared.api, prepared.pod)
    except KubernetesError as error:
        services.telemetry.warning("pull secrets unknown", pod=prepared.pod.name, error=str(error))
        return "unknown"


def _after_unknown(services: Services, claim: Claim, prepared: Preparation, error: ProviderUnavailableError) -> Claim:
    """No answer: look by mark before anything else; a positive answer is enough, a negative one is not."""
    provider = prepared.provider
    services.telemetry.warning("create outcome unknown", claim_id=claim.claim_id, error=str(error))
    try:
        instance = provider.find(claim.mark(services.installation))
    except ProviderError:
        instance = None
    if instance is not None:
        return _adopt(services, claim, provider, instance, prepared)
    waiting = reject(services, claim, error)
    show_provisioning(services, prepared, waiting)
    return waiting


def _adopt(
    services: Services, claim: Claim, provider: Provider, instance: Instance, prepared: Preparation | None = None
) -> Claim:
    """Write the instance id before anything else is read, then release where that may follow at once."""
    too_dear = "" if prepared is None else prepared.above_maximum(instance)
    go_on = not (provider.capabilities.queues or too_dear or dead(instance.state, instance.exit_code))
    try:
        provisioned = services.claims.save(claim, created(claim, instance, services.clock.now(), keep_lease=go_on))
    except ConflictError as conflict:
        return _lost_lease(services, claim, provider, instance, conflict.current)
    if prepared is not None and too_dear:
        return take_back_dear(services, prepared, provisioned, too_dear)
    checked = None if prepared is None else prepared.pod
    return release(services, provisioned, checked) if go_on else provisioned


def _lost_lease(
    services: Services, claim: Claim, provider: Provider, instance: Instance, current: Claim | None
) -> Claim:
    """Somebody moved the claim while we created: keep what the ledger still wants, end the rest.

    A claim that is ending takes the id, so that its end is confirmed by id; one that already holds
    this id is as it should be; any other has no use for the instance.
    """
    current = services.claims.get(claim.claim_id) if current is None else current
    if current is None or current.attempt is None:
        _give_back(services, claim, provider, instance)
        return claim
    same_attempt = current.attempt.number == claim.attempts[-1].number
    if same_attempt and current.attempt.instance_id == instance.id and not current.attempt.confirmed_gone:
        return current
    if same_attempt and current.attempt.instance_id is None and not current.attempt.confirmed_gone:
        if current.phase is Phase.PROVISIONING:
            return _adopt(services, current, provider, instance)
        if current.phase is Phase.TERMINATING:
            noted = move(
                current,
                Phase.TERMINATING,
                services.clock.now(),
                attempts=with_attempt(
                    current,
                    outcome=AttemptOutcome.CREATED,
                    instance_id=instance.id,
                    scope=instance.scope,
                    lease_until=min(current.attempt.lease_until, services.clock.now()),
                ),
            )
            return reclaim(services, services.claims.save(current, noted))
    _give_back(services, claim, provider, instance)
    return current


def _give_back(services: Services, claim: Claim, provider: Provider, instance: Instance) -> None:
    """End an instance that the ledger has no use for; where that fails now, the sweep finds it by its mark."""
    services.telemetry.error(
        "instance made after its lease was lost; terminating it", claim_id=claim.claim_id, instance_id=instance.id
    )
    try:
        provider.terminate(instance.id)
    except ProviderError as error:
        services.telemetry.warning("not terminated; left to the sweep", instance_id=instance.id, error=str(error))


def _recover(services: Services, claim: Claim) -> Claim:
    """A lease ended without a result: adopt what was made, or prove that nothing was."""
    attempt = claim.attempts[-1]
    began_at = services.clock.now()
    try:
        provider = services.providers.get(attempt.candidate.provider)
        account = account_of(services, provider)
        instance = provider.find(claim.mark(services.installation))
        if instance is None and not is_of(services, attempt, account):
            raise ProviderUnavailableError("another account answers: its silence says nothing")
    except ProviderError as error:
        services.telemetry.warning("cannot look for the instance", claim_id=claim.claim_id, error=str(error))
        now = services.clock.now()
        return services.claims.save(claim, move(claim, Phase.PROVISIONING, now, next_action_at=now + ABSENCE_GAP))
    if instance is not None:
        return _adopt(services, claim, provider, instance)
    visible_from = attempt.lease_until + provider.capabilities.visibility_delay
    if began_at < visible_from:
        return services.claims.save(
            claim, move(claim, Phase.PROVISIONING, began_at, next_action_at=visible_from)
        )  # fmt: skip
    if not absence_proved(attempt, began_at):
        first = attempt.absent_since or began_at
        return services.claims.save(claim, absent(claim, began_at, began_at=first, again_at=first + ABSENCE_GAP))
    return _try_again(services, claim)


def _try_again(services: Services, claim: Claim) -> Claim:
    """Nothing was made: create as attempt n+1, or give the candidate up after too many silences.

    A create whose caller did not live to say that there was no answer counts like one without an answer.
    """
    now = services.clock.now()
    silences = claim.unknown_outcomes + (claim.reason != OUTCOME_UNKNOWN)
    if silences >= MAX_UNKNOWN_OUTCOMES:
        return give_up_unknown(services, claim)
    proved = move(
        claim,
        Phase.PLACED,
        now,
        attempts=with_attempt(claim, outcome=AttemptOutcome.NEVER_MADE),
        next_action_at=now,
        unknown_outcomes=silences,
        reason="NeverMade",
        message="the last create came to no answer and made nothing; trying again",
    )
    again = services.claims.save(claim, proved)
    show_waiting(services, again)
    return _begin(services, again)
