"""A claim: the ledger's record of one Pod's right to one instance."""

import hashlib
from decimal import Decimal
from enum import StrEnum

from pydantic import AwareDatetime, Field

from nebula.domain.base import StoredModel
from nebula.domain.candidate import Candidate, Shape
from nebula.domain.instance import InstanceState, Mark
from nebula.domain.nodepool import Failover

#: Characters kept of a text that quotes a Pod: a Pod may be 1.5 MB, a row 400 KB.
MAX_TEXT = 2000
_ID_LENGTH = 32
_HEX_DIGITS = frozenset("0123456789abcdef")


class Phase(StrEnum):
    """Where a claim stands; the moves between them are in ``nebula.lifecycle.transitions``."""

    PENDING = "Pending"
    PLACED = "Placed"
    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    RELEASING = "Releasing"
    RELEASED = "Released"
    WITHDRAWING = "Withdrawing"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"


class TerminationReason(StrEnum):
    """Why a claim ends."""

    POD_DELETED = "PodDeleted"
    POD_FINISHED = "PodFinished"
    INSTANCE_LOST = "InstanceLost"
    INSTANCE_FAILED = "InstanceFailed"
    PREEMPTED = "Preempted"
    START_DEADLINE = "StartDeadline"
    ABANDONED = "Abandoned"


class AttemptOutcome(StrEnum):
    """What is known of one call of ``provision``.

    ``UNKNOWN`` may exist at the provider; ``CREATED`` does; the last three are confirmed not to be
    billed any more. ``ABANDONED`` counts as gone on an operator's word only.
    """

    UNKNOWN = "Unknown"
    CREATED = "Created"
    NEVER_MADE = "NeverMade"
    REFUSED = "Refused"
    GONE = "Gone"
    ABANDONED = "Abandoned"


CONFIRMED_GONE = frozenset(
    {AttemptOutcome.NEVER_MADE, AttemptOutcome.REFUSED, AttemptOutcome.GONE, AttemptOutcome.ABANDONED}
)


class Attempt(StoredModel):
    """One call of ``provision``: its candidate, what came of it, and what it may cost.

    ``failures`` holds one line per instance type that was tried and refused inside the call.
    ``scope`` is the provider's listing scope of the instance (an EC2 region), None while unknown.
    ``absent_since`` is when the first complete listing without it began, while *never made* or
    *lost* is being proved. ``strange`` is True while what has its id does not carry its mark.
    ``account`` tells whose account it was made in (``workflows.accounts``), ""
    for one made by a release that did not note it.
    """

    number: int
    candidate: Candidate
    started_at: AwareDatetime
    lease_until: AwareDatetime
    outcome: AttemptOutcome = AttemptOutcome.UNKNOWN
    instance_id: str | None = None
    scope: str | None = None
    account: str = ""
    strange: bool = False
    absent_since: AwareDatetime | None = None
    delete_accepted_at: AwareDatetime | None = None
    failures: tuple[str, ...] = ()
    detail: str = ""

    @property
    def confirmed_gone(self) -> bool:
        """Whether nothing of this attempt can be billed any more."""
        return self.outcome in CONFIRMED_GONE


class Observation(StoredModel):
    """The instance as last seen, kept only as far as decisions and the Pod's status need it.

    ``cost_per_hour`` is the rate remembered from when it ran (providers report 0 once it stopped).
    ``unready_since`` is when an instance that had run was first reported as neither running nor ended, in words
    that are known for another state or for none.
    """

    state: InstanceState = InstanceState.PENDING
    cost_per_hour: Decimal | None = None
    instance_type: str = ""
    region: str = ""
    endpoint: str | None = None
    exit_code: int | None = None
    running_since: AwareDatetime | None = None
    unready_since: AwareDatetime | None = None
    ended_at: AwareDatetime | None = None
    message: str = ""


class Claim(StoredModel):
    """One Pod's claim. Written only by a conditional write on (phase, version).

    ``reason`` and ``message`` are the last decision, as the Pod shows it. ``next_action_at`` is set
    whenever the claim owes an action; the ``due`` index finds it. ``failover`` is the NodePool's, as
    read at placement. ``exclusions`` are candidate keys that refused this claim for a reason of its
    own. ``rejections`` counts the refusals of the current event chain; ``unknown_outcomes`` the calls
    in a row whose outcome nobody knows. ``wanted_per_hour`` is set while only the budget stands in the
    way: the USD per hour that has to be freed. ``node_pool_revision`` is the NodePool's spec that the last
    decision was taken on.
    ``cluster_uid`` is the identity of the cluster in which the Pod was found, "" where it could not be read.
    ``refused_pulls`` are the fingerprints of credentials with which the image was refused since the Pod last waited.
    ``pull_secrets_version`` tells the pull Secrets with which the image was refused from later ones.
    ``pod_absent_since`` is when the Pod was first not found while most Pods of its cluster had vanished at once.
    """

    claim_id: str
    version: int = 1
    phase: Phase
    cluster: str
    namespace: str
    pod_name: str
    pod_uid: str
    cluster_uid: str = ""
    pod_absent_since: AwareDatetime | None = None
    pull_secrets_version: str = ""
    refused_pulls: tuple[str, ...] = ()
    node_pool: str
    shape: Shape
    created_at: AwareDatetime
    updated_at: AwareDatetime
    pod_created_at: AwareDatetime | None = None
    phase_since: AwareDatetime
    candidate: Candidate | None = None
    attempts: tuple[Attempt, ...] = ()
    pod_fields_hash: str | None = None
    credential_key: str | None = None
    next_action_at: AwareDatetime | None = None
    reason: str = ""
    message: str = ""
    failover: Failover = Failover()
    exclusions: tuple[str, ...] = ()
    rejections: int = 0
    unknown_outcomes: int = 0
    wanted_per_hour: Decimal | None = None
    node_pool_revision: str = ""
    observation: Observation = Observation()
    released_at: AwareDatetime | None = None
    termination_reason: TerminationReason | None = None
    decision: tuple[str, ...] = Field(default=(), description="one line per candidate not taken")

    @property
    def attempt(self) -> Attempt | None:
        """The latest attempt, or None before the first."""
        return self.attempts[-1] if self.attempts else None

    @property
    def instance_id(self) -> str | None:
        """The latest attempt's instance id while that attempt may be billed."""
        attempt = self.attempt
        return None if attempt is None or attempt.confirmed_gone else attempt.instance_id

    @property
    def live(self) -> bool:
        """A claim lives until it is ``Terminated``."""
        return self.phase is not Phase.TERMINATED

    @property
    def unconfirmed(self) -> tuple[Attempt, ...]:
        """Attempts that may still be billed."""
        return tuple(a for a in self.attempts if not a.confirmed_gone)

    @property
    def committed_per_hour(self) -> Decimal:
        """USD per hour held of the NodePool's budget.

        Every attempt not confirmed gone counts at its reserve; a placed candidate that has no
        attempt yet counts too (docs/placement.md). Where the provider is seen to bill more than was reserved
        (a price list was old, a price rose), what it bills counts. A Terminated claim holds nothing.
        """
        if self.phase is Phase.TERMINATED:
            return Decimal(0)
        held = sum((a.candidate.reserve_per_hour for a in self.unconfirmed), Decimal(0))
        if self.attempt is not None and not self.attempt.confirmed_gone:
            billed = self.observation.cost_per_hour or Decimal(0)
            held += max(billed - self.attempt.candidate.reserve_per_hour, Decimal(0))
        if self.phase is Phase.PLACED and self.candidate is not None:
            held += self.candidate.reserve_per_hour
        return held

    def mark(self, installation: str) -> Mark:
        """The mark of the latest attempt; ValueError before the first."""
        attempt = self.attempt
        if attempt is None:
            raise ValueError(f"claim {self.claim_id} has made no attempt")
        return Mark(installation=installation, claim_id=self.claim_id, attempt=attempt.number)


def claim_id_for(cluster: str, pod_uid: str) -> str:
    """The claim id of a Pod: 32 lower-case hex digits of cluster and Pod uid."""
    return hashlib.sha256(f"{cluster}/{pod_uid}".encode()).hexdigest()[:_ID_LENGTH]


def is_claim_id(text: str) -> bool:
    """Whether a text may be a claim's id: a mark is read from where others write too."""
    return len(text) == _ID_LENGTH and all(character in _HEX_DIGITS for character in text)


def bounded(text: str) -> str:
    """A text as a row keeps it: at most ``MAX_TEXT`` characters, an ellipsis where it was cut."""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
