"""When a lent credential goes: the order of checks of docs/credentials.md, on one row and two facts."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import Field

from nebula.domain.base import Model
from nebula.domain.credential import Credential, CredentialState
from nebula.settings import RetirementSettings

#: The rule of a credential that no Pod has used lately; no reason beside a live workload, which uses it.
UNUSED = "unused"


class Action(StrEnum):
    """What the next run does with a row."""

    NONE = "None"
    WAIT = "Wait"
    DEFER = "Defer"
    RETIRE = "Retire"
    FINISH = "Finish"


class RetirementPolicy(Model):
    """How long a credential may stay at one provider. ``max_age`` None sets no limit of age.

    A credential is never retired sooner than ``grace`` after its last touch: the time in which a
    function may hold a credential that the claims' index does not show yet.
    """

    unused_after: timedelta = Field(ge=timedelta(0))
    superseded_after: timedelta = Field(ge=timedelta(0))
    grace: timedelta = Field(ge=timedelta(0))
    max_age: timedelta | None = Field(default=None, ge=timedelta(0))
    dry_run: bool = False


class RetirementPolicies(Model):
    """The policy of the installation, the providers that have their own, and the bounds of one run.

    ``limit`` is the number of credentials deleted per run and provider, ``source_limit`` the number of
    Secrets read per run, ``run_time`` the time after which a run begins nothing more; the rest is left to
    the next runs. ``lease`` is how long a run holds a row that it is retiring: longer than any run lives.
    """

    default: RetirementPolicy
    providers: Mapping[str, RetirementPolicy] = Field(default_factory=dict)
    limit: int = Field(default=50, ge=1)
    source_limit: int = Field(default=500, ge=1)
    run_time: timedelta = timedelta(seconds=200)
    lease: timedelta = timedelta(seconds=330)

    def of(self, provider: str) -> RetirementPolicy:
        """The policy that holds for a provider."""
        return self.providers.get(provider, self.default)

    def rehearsed(self) -> "RetirementPolicies":
        """The same policies, deleting nothing."""
        return self.model_copy(
            update={
                "default": self.default.model_copy(update={"dry_run": True}),
                "providers": {
                    name: policy.model_copy(update={"dry_run": True}) for name, policy in self.providers.items()
                },
            }
        )


class Verdict(Model):
    """What happens next with a row, when, and why not sooner.

    ``due_at`` is the earliest time of retirement by the policy; None where time alone retires nothing.
    """

    action: Action
    reason: str
    due_at: datetime | None = None


def policies(settings: RetirementSettings) -> RetirementPolicies:
    """The policies that the settings describe; a provider's own values replace the general ones."""
    default = RetirementPolicy(
        unused_after=settings.unused_after,
        superseded_after=settings.superseded_after,
        grace=settings.retirement_grace,
        max_age=settings.max_age,
        dry_run=settings.retirement_dry_run,
    )
    overrides = {
        name: default.model_copy(update=own.model_dump(exclude_unset=True))
        for name, own in settings.retirement_overrides.items()
    }
    return RetirementPolicies(default=default, providers=overrides, limit=settings.retirement_limit)


def judge(row: Credential, live_claims: int, policy: RetirementPolicy, now: datetime) -> Verdict:
    """What to do with a row that ``live_claims`` live claims carry."""
    if row.state is CredentialState.RETIRED:
        return Verdict(action=Action.NONE, reason="retired")
    if row.state is CredentialState.RETIRING:
        if live_claims:
            return Verdict(action=Action.DEFER, reason=_in_use(live_claims))
        return Verdict(action=Action.FINISH, reason="its retirement began and is not confirmed yet")
    due_at, why = retirement_time(row, policy)
    if now < due_at:
        return Verdict(action=Action.WAIT, reason=_in_use(live_claims) if live_claims else why, due_at=due_at)
    if live_claims:
        held = _in_use(live_claims) if why == UNUSED else f"{_in_use(live_claims)}; {why}"
        return Verdict(action=Action.DEFER, reason=held, due_at=due_at)
    return Verdict(action=Action.RETIRE, reason=why, due_at=due_at)


def retirement_time(row: Credential, policy: RetirementPolicy) -> tuple[datetime, str]:
    """The earliest time at which the policy retires a row that nothing uses, and the rule that sets it."""
    rules = [(row.last_used_at + policy.unused_after, UNUSED)]
    if row.superseded_at is not None:
        rules.append((row.superseded_at + policy.superseded_after, "superseded"))
    if row.expires_at is not None:
        rules.append((row.expires_at + policy.superseded_after, "its password has expired"))
    if row.aged_out:
        rules.append((row.last_used_at, "past its maximum age"))
    due_at, why = min(rules)
    return max(due_at, row.last_used_at + policy.grace), why


def past_max_age(row: Credential, policy: RetirementPolicy, now: datetime) -> bool:
    """Whether a row is to be closed to new Pods because its object has been at the provider too long."""
    if row.aged_out or row.state not in (CredentialState.ACTIVE, CredentialState.SUPERSEDED):
        return False
    return policy.max_age is not None and now >= row.created_at + policy.max_age


def _in_use(live_claims: int) -> str:
    return f"{live_claims} live workload{'s' if live_claims != 1 else ''}"
