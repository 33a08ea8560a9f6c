"""Which of a Pod's matching credentials an attempt pulls with, and what follows when the image is refused with it.

A kubelet tries every matching credential in order. A provider takes one per create, so the next one is tried by the
next attempt, as far as the provider says at the create that it could not pull (docs/credentials.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from nebula.credentials.fingerprint import fingerprint_of
from nebula.domain.claim import AttemptOutcome, Claim, Phase
from nebula.domain.credential import CredentialKey
from nebula.domain.workload import PullCredential
from nebula.kubernetes.pull_secrets import PullLookup
from nebula.lifecycle.transitions import move, with_attempt
from nebula.providers.base import Provider
from nebula.providers.errors import ProviderError
from nebula.workflows.image_wait import NEXT_PULL
from nebula.workflows.lend import CredentialExpiredError, record_credential
from nebula.workflows.services import Services

#: Different passwords that are tried for one image before the Pod waits.
MAX_TRIED = 5


@dataclass(frozen=True)
class PullChoice:
    """What to pull with (None: anonymously), its row's key, and whether another one is left after it."""

    pull: PullCredential | None = None
    key: CredentialKey | None = None
    another: bool = False


def choose(services: Services, provider: Provider, claim: Claim, lookup: PullLookup) -> PullChoice:
    """The first matching credential that was not refused yet; its row is written or touched.

    An expired one is passed over while another matches. When all were refused it begins anew. Raises what
    ``record_credential`` raises.
    """
    if lookup.credential is None:
        return PullChoice()
    offered = (lookup.credential, *lookup.alternatives)
    different: dict[str, PullCredential] = {}
    for pull in offered:
        different.setdefault(fingerprint_of(services.fingerprint_key, pull), pull)
    tried = dict(list(different.items())[:MAX_TRIED])
    untried = [pull for print_, pull in tried.items() if print_ not in claim.refused_pulls] or list(tried.values())
    for left, pull in zip(reversed(range(len(untried))), untried, strict=True):
        try:
            return _recorded(services, provider, claim, pull, another=left > 0)
        except CredentialExpiredError:
            if not left:
                raise
    raise AssertionError("there is at least one credential")


def go_on_with_next(services: Services, claim: Claim, choice: PullChoice, error: ProviderError) -> Claim:
    """Note that the image was refused with a credential: the claim is Placed again, for an attempt with the next."""
    if choice.pull is None or choice.key is None:
        raise ValueError("an anonymous pull has no next credential")
    message = f"{NEXT_PULL} {choice.pull.source} ({choice.pull.registry}): {error}"
    services.telemetry.info("next pull credential", claim_id=claim.claim_id, refused=str(choice.key))
    now = services.clock.now()
    return services.claims.save(
        claim,
        move(
            claim,
            Phase.PLACED,
            now,
            attempts=with_attempt(claim, outcome=AttemptOutcome.REFUSED, detail=message, failures=error.failures),
            refused_pulls=tuple(dict.fromkeys((*claim.refused_pulls, choice.key.fingerprint))),
            next_action_at=now,
            reason="ImagePull",
            message=message,
        ),
    )


def _recorded(
    services: Services, provider: Provider, claim: Claim, pull: PullCredential, *, another: bool
) -> PullChoice:
    pinned = pull.model_copy(update={"cluster_uid": claim.cluster_uid})
    return PullChoice(pinned, record_credential(services, provider, pinned), another)
