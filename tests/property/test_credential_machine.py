"""Random uses, rotations, deletions, crashes, faults, clock steps and a second worker: what lending promises holds.

The provider here never refuses a delete as "in use": the ledger alone must keep what live workloads need.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import timedelta

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from nebula.credentials.policy import RetirementPolicy, retirement_time
from nebula.domain.claim import Claim
from nebula.domain.credential import Credential, CredentialKey, CredentialState
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.kubernetes.pull_secrets import UnsupportedPullSecretError
from nebula.providers.errors import AuthenticationError, ProviderError, ProviderUnavailableError, RateLimitedError
from nebula.providers.simulated import Call

from tests.support.interleaver import Interleaver, LaggingIndex, NeverBack, NeverRefuses
from tests.support.lending import DAY, HOUR, PASSWORD, POLICY, START, USER, Lending
from tests.support.provisioning import start_as_provisioning_does
from tests.support.tripwire import CrashError

SECRETS = st.sampled_from(["a", "b"])
PASSWORDS = st.integers(1, 3).map(lambda n: f"{PASSWORD}-{n}")
#: Outside calls of one retirement, and of one start.
STEPS, START_STEPS = st.integers(1, 16), st.integers(1, 9)
#: What the demo runs with: nothing but the order of writes protects a credential then.
AT_ONCE = RetirementPolicy(unused_after=timedelta(0), superseded_after=timedelta(0), grace=timedelta(0))
FAULTS = st.sampled_from(
    [
        ProviderUnavailableError("gateway timeout"),
        RateLimitedError("slow down", retry_after=timedelta(seconds=20)),
        AuthenticationError("bad key"),
    ]
)
REGISTRY_CALLS = st.sampled_from([Call.REGISTRY_ENSURE, Call.REGISTRY_LIST, Call.REGISTRY_DELETE, Call.PROVISION])
LEFT_ALONE = ["nebula-somebody-else", "team-credential"]
LEASE = timedelta(seconds=330)
DELETE = ["delete_registry_credential"]
WATCHED = {
    "credentials": ("get", "latest", "create", "save", "all"),
    "claims": ("create", "save", "find_by_credential"),
    "publisher": ("publish",),
    "provider": ("provision", "list_registry_credentials", "ensure_registry_credential", *DELETE),
}


class Credentials(RuleBasedStateMachine):
    """Two Secrets, three passwords, one provider, as many Pods as come."""

    def __init__(self) -> None:
        super().__init__()
        self.world = Lending()
        self.world.claims = self.claims = self.ledgers()
        self.world.provider = NeverRefuses(NeverBack(self.world.clock))
        self.world.providers = type(self.world.providers)(self.world.provider)
        for name in LEFT_ALONE:
            self.world.provider.add(name)
        self.wire = Interleaver()
        for edge, methods in WATCHED.items():
            self.wire.watch(edge, getattr(self.world, edge), methods)
        self.passwords: dict[str, str] = {}
        self.pods = 0
        self.raised: list[str] = []
        self.by_hand: set[str] = set()
        self.faulty = False

    def ledgers(self) -> LaggingIndex:
        """The claims of a run; another machine may bring other ledgers."""
        return LaggingIndex(self.world.clock)

    @initialize(account=st.sampled_from(["acct", None]), lags=st.booleans())
    def begin(self, account: str | None, lags: bool) -> None:
        """Where the claims' index lags, the grace is what makes up for it."""
        self.world.provider.account_id = account
        self.claims.lags = lags
        self.policy = POLICY if lags else AT_ONCE

    # The user

    @rule(secret=SECRETS, password=PASSWORDS)
    def write_secret(self, secret: str, password: str) -> None:
        self.passwords[secret] = password
        self.world.put_secret(password, name=secret)

    @precondition(lambda self: self.passwords)
    @rule(secret=SECRETS)
    def delete_secret(self, secret: str) -> None:
        self.passwords.pop(secret, None)
        self.world.delete_secret(secret)

    @precondition(lambda self: self.passwords)
    @rule(secret=SECRETS, crash=st.none() | STEPS, after=st.booleans())
    def start_pod(self, secret: str, crash: int | None, after: bool) -> None:
        self._guarded(lambda: self._start(secret), crash, after=after)

    @precondition(lambda self: self.live)
    @rule(index=st.integers(0, 9))
    def end_pod(self, index: int) -> None:
        self.world.end(self.live[index % len(self.live)])

    # The rest of the world

    @rule(
        step=st.sampled_from([timedelta(minutes=1), timedelta(minutes=20), HOUR, DAY, 8 * DAY, -timedelta(minutes=3)])
    )
    def pass_time(self, step: timedelta) -> None:
        self.world.clock.advance(step)

    @rule(down=st.booleans(), forbidden=st.booleans())
    def change_cluster(self, down: bool, forbidden: bool) -> None:
        self.world.api.down = down
        self.world.api.forbidden = {"default"} if forbidden else set()

    @rule(call=REGISTRY_CALLS, fault=FAULTS, after=st.booleans())
    def break_provider(self, call: Call, fault: ProviderError, after: bool) -> None:
        self.world.provider.script.fail(call, fault, after=after)
        self.faulty = True

    @rule(key=st.sampled_from(["key-1", "key-2"]))
    def change_key(self, key: str) -> None:
        self.world.change_key(key)

    @rule(index=st.integers(0, 9))
    def delete_by_hand(self, index: int) -> None:
        ours = [o for o in self.world.provider._objects.values() if o.name not in LEFT_ALONE]
        if ours:
            chosen = ours[index % len(ours)]
            self.by_hand |= {chosen.id, chosen.name}
            self.world.provider.remove(chosen.id)

    # The control plane

    @rule(crash=st.none() | STEPS, after=st.booleans())
    def retire(self, crash: int | None, after: bool) -> None:
        done = self._guarded(self._retire, crash, after=after)
        if done and crash is None and not self.faulty:
            self._check_deadlines()
        if done and crash is None and not self.world.api.down and not self.world.api.forbidden:
            self._check_sources()

    @precondition(lambda self: self.passwords)
    @rule(secret=SECRETS, at=STEPS)
    def start_a_pod_while_retiring(self, secret: str, at: int) -> None:
        self._come_due(secret)
        self._between(at, lambda: self._start(secret))
        self._guarded(self._retire, None)

    @precondition(lambda self: self.passwords)
    @rule(secret=SECRETS, at=START_STEPS)
    def retire_while_a_pod_starts(self, secret: str, at: int) -> None:
        self._come_due(secret)
        self._between(at, self._retire)
        self._guarded(lambda: self._start(secret), None)

    @precondition(lambda self: self.passwords)
    @rule(secret=SECRETS, at=START_STEPS)
    def start_two_pods_at_once(self, secret: str, at: int) -> None:
        self._between(at, lambda: self._start(secret))
        self._guarded(lambda: self._start(secret), None)

    @precondition(lambda self: self.passwords)
    @rule(secret=SECRETS, at=STEPS)
    def retire_twice_at_once(self, secret: str, at: int) -> None:
        self._come_due(secret)
        self._between(at, self._retire)
        self._guarded(self._retire, None)

    # What must hold

    @invariant()
    def what_is_not_ours_is_untouched(self) -> None:
        assert set(LEFT_ALONE) <= set(self.world.objects())

    @invariant()
    def every_object_of_ours_has_its_row(self) -> None:
        known = {row.key.object_name for row in self.world.rows()}
        assert set(self.world.objects()) - set(LEFT_ALONE) <= known

    @invariant()
    def no_credential_of_a_live_machine_is_deleted(self) -> None:
        for machine in self.world.provider.console.owned():
            used = machine.registry_credential_id
            assert used is not None
            assert used in self.by_hand or self.world.provider.has_registry_credential(used)

    @invariant()
    def no_live_claim_carries_a_retired_row_and_runs(self) -> None:
        running = {machine.registry_credential_id for machine in self.world.provider.console.owned()} - self.by_hand
        for row in self.world.rows():
            assert row.state is not CredentialState.RETIRED or row.provider_id not in running

    def teardown(self) -> None:
        """Everything heals; what is in use stays alone, and then nothing of ours is left."""
        self.wire.disarm()
        self._heal()
        self.world.clock.advance(max(START - self.world.clock.now(), timedelta(0)) + 9 * DAY)
        self._retire()
        in_use = {CredentialKey.parse(claim.credential_key or "").object_name for claim in self.live}
        here = set(self.world.objects()) - set(LEFT_ALONE)
        assert here <= in_use
        assert in_use - here <= self.by_hand | self._never_made()
        for claim in self.live:
            self.world.end(claim)
        self.world.clock.advance(HOUR)
        self._retire()
        assert self.world.objects() == LEFT_ALONE
        said = self.world.everything_said() + "".join(self.raised)
        assert not any(canary in said for canary in (PASSWORD, USER))

    # How it is done

    @property
    def live(self) -> list[Claim]:
        return [claim for claim in self.world.claims.all() if claim.live]

    @rule()
    def _heal(self) -> None:
        self.world.provider.script.heal()
        self.world.api.down, self.world.api.forbidden = False, set()
        self.faulty = False

    def _retire(self) -> None:
        self.world.retire(self.policy)

    def _come_due(self, secret: str) -> None:
        """On a quiet day, leave a credential that nothing uses, long enough ago."""
        self._heal()
        before = {claim.claim_id for claim in self.live}
        self._guarded(lambda: self._start(secret), None)
        for claim in self.live:
            if claim.claim_id not in before:
                self.world.end(claim)
        self.world.clock.advance(8 * DAY)

    def _start(self, secret: str) -> None:
        if self.passwords:
            self.pods += 1
            source = secret if secret in self.passwords else min(self.passwords)
            start_as_provisioning_does(self.world, f"pod-{self.pods}", source)

    def _guarded(self, what: Callable[[], object], crash: int | None, *, after: bool = False) -> bool:
        """Do it; a crash or a fault ends it, and what was raised is kept for the canaries."""
        if crash is not None:
            self.wire.arm(crash, after=after)
        try:
            what()
        except (CrashError, ProviderError, ClusterUnavailableError, UnsupportedPullSecretError) as error:
            self.raised.append("".join(traceback.format_exception(error)))
            return False
        finally:
            self.wire.disarm()
        return True

    def _between(self, at: int, what: Callable[[], object]) -> None:
        """Let a second worker do all of it at the n-th outside call from now."""
        self.wire.interrupt(at, lambda: self._guarded(what, None))

    def _check_deadlines(self) -> None:
        """After a run that nothing disturbed, whatever is still here has a reason to be."""
        now = self.world.clock.now()
        for row in self.world.rows():
            if row.key.object_name not in self.world.objects() or self._claims_of(row):
                continue
            held = row.retiring_at is not None and now < row.retiring_at + LEASE
            assert held or now < retirement_time(row, self.policy)[0], row

    def _check_sources(self) -> None:
        """After a run that could read every Secret, a row is superseded exactly when none of its own yields it."""
        prints = {self.world.fingerprint(password): password for password in self.passwords.values()}
        for row in self.world.rows():
            if row.state in (CredentialState.ACTIVE, CredentialState.SUPERSEDED):
                password = prints.get(row.key.fingerprint)
                yielded = any(self.passwords.get(source.rpartition("/")[2]) == password for source in row.sources)
                assert (row.superseded_at is None) == (password is not None and yielded), row

    def _claims_of(self, row: Credential) -> list[Claim]:
        return [claim for claim in self.live if claim.credential_key == str(row.key)]

    def _never_made(self) -> set[str]:
        """Objects that a fault or a crash kept from being made."""
        return {row.key.object_name for row in self.world.rows() if row.provider_id is None}


TestCredentials = Credentials.TestCase
TestCredentials.settings = settings(
    max_examples=100,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
