"""Mutants of lent registry credentials: what is lent, what is kept, what goes, what is never said."""

from __future__ import annotations

from tests.mutants.mutant import Area, Mutant

_LEND = "unit/test_lend.py"
_RETIRE = "unit/test_retire.py"
_FAULTS = "unit/test_retire_faults.py"
_POLICY = "unit/test_credential_policy.py"
_STORE = "contract/test_credential_store.py"
_SECRETS = "unit/test_pull_secrets.py"
_SHARED = "unit/test_credential_lives.py"

_RUN = "workflows/retire_provider.py"

_m = Area("credentials")

MUTANTS: tuple[Mutant, ...] = (
    _m(
        "claims are not looked at again once the row is taken",
        _RUN,
        "return None if self._in_use(taken) else taken",
        "return taken",
        f"{_RETIRE}::test_a_claim_that_shows_only_after_retiring_began_gets_it_back",
    ),
    _m(
        "live claims do not keep a credential",
        _RUN,
        "        if not count:\n            return False",
        "        if count >= 0:\n            return False",
        f"{_RETIRE}::test_it_goes_neither_too_soon_nor_while_a_workload_lives",
        f"{_SHARED}::test_the_end_of_a_pod_never_deletes_a_credential_that_another_one_uses",
    ),
    _m(
        "the grace is ignored",
        "credentials/policy.py",
        "return max(due_at, row.last_used_at + policy.grace), why",
        "return due_at, why",
        f"{_POLICY}::test_the_order_of_checks",
    ),
    _m(
        "a row in memory is saved without a condition",
        "stores/memory_credentials.py",
        "if current is None or _guard(current) != _guard(previous):",
        "if current is None:",
        f"{_STORE}::test_a_save_on_a_moved_row_conflicts",
        f"{_RETIRE}::test_a_touch_between_reading_and_writing_wins_where_the_index_lags",
    ),
    _m(
        "a row in DynamoDB is saved whatever its last use",
        "stores/dynamo_credentials.py",
        "version=previous.version, state=previous.state, last_used_at=previous.last_used_at",
        "state=previous.state",
        f"{_STORE}::test_a_save_on_a_moved_row_conflicts",
    ),
    _m(
        "what is being retired is lent again",
        "workflows/lend.py",
        "_LENDABLE = (CredentialState.ACTIVE, CredentialState.SUPERSEDED)",
        "_LENDABLE = (CredentialState.ACTIVE, CredentialState.SUPERSEDED, CredentialState.RETIRING)",
        f"{_LEND}::test_a_row_that_is_being_retired_is_left_to_it",
    ),
    _m(
        "the provider is called before the row is looked at",
        "workflows/lend.py",
        "    _standing(services, key, account)\n    object_id",
        "    object_id",
        f"{_LEND}::test_a_key_without_a_row_is_not_made",
    ),
    _m(
        "a use does not touch the row",
        "workflows/lend.py",
        '"last_used_at": max(now, row.last_used_at),',
        '"last_used_at": row.last_used_at,',
        f"{_LEND}::test_every_use_touches_the_row_and_is_told_once",
    ),
    _m(
        "unrecorded objects are deleted",
        _RUN,
        "        self.unrecorded = listing.unrecorded()\n",
        "        self.unrecorded = listing.unrecorded()\n"
        "        for one in [o for n in self.unrecorded for o in listing._objects[n]]:\n"
        "            provider.delete_registry_credential(one)\n",
        f"{_RETIRE}::test_nothing_foreign_is_touched_and_what_has_our_prefix_is_named",
    ),
    _m(
        "an absence is believed whatever the key",
        "workflows/retire_listing.py",
        'if row.lent_to in ("", self.lender):',
        "if True:",
        f"{_FAULTS}::test_where_the_account_is_not_told_another_keys_empty_list_is_not_an_absence",
    ),
    _m(
        "what stays listed after its deletion alarms nobody",
        _RUN,
        'accepted its deletion and still lists it", kind=Kind.FAILED)',
        'accepted its deletion and still lists it")',
        "unit/test_credential_overdue.py::test_what_stays_listed_after_its_deletion_alarms_each_hour_and_is_shown",
    ),
    _m(
        "a dry run deletes",
        _RUN,
        "        if self._policy.dry_run:\n            self.outcomes",
        "        if self._policy.dry_run and not row:\n            self.outcomes",
        f"{_RETIRE}::test_a_dry_run_says_what_it_would_do_and_does_nothing",
    ),
    _m(
        "silence supersedes",
        "credentials/sources.py",
        "if Yield.UNKNOWN in said.values() or row.superseded_at is not None:",
        "if row.superseded_at is not None:",
        "unit/test_supersede.py::test_silence_supersedes_nothing",
    ),
    _m(
        "a value of the Secret is in an exception",
        "credentials/docker_config.py",
        'BrokenDockerConfigError("auth has no colon")',
        'BrokenDockerConfigError(f"auth {plain} has no colon")',
        "unit/test_docker_config.py::test_a_broken_configuration_fails_as_a_whole_and_shows_nothing",
    ),
    _m(
        "the user is in the row",
        "workflows/lend.py",
        "username_hint=masked(pull.username),",
        "username_hint=pull.username.get_secret_value(),",
        f"{_LEND}::test_nothing_secret_is_left_anywhere",
    ),
    _m(
        "fingerprints need no key",
        "credentials/fingerprint.py",
        "    if not secret:\n        raise",
        "    if secret is None:\n        raise",
        f"{_POLICY}::test_a_fingerprint_is_keyed_framed_and_fit_for_a_name",
    ),
    _m(
        "a token becomes an anonymous pull",
        "kubernetes/pull_secrets.py",
        "    if not usable:\n        entry, source, _ = found[0]",
        "    if not usable:\n        return PullLookup(None)\n        entry, source, _ = found[0]",
        f"{_SECRETS}::test_what_a_provider_cannot_take_is_refused_and_never_anonymous",
    ),
    _m(
        "an expired password is lent",
        "workflows/lend.py",
        "    if expires_at is not None and expires_at <= now:\n        raise",
        "    if expires_at is not None and expires_at < now.min.replace(tzinfo=now.tzinfo):\n        raise",
        f"{_LEND}::test_an_ecr_password_is_not_used_past_its_expiry",
    ),
    _m(
        "only the first matching Secret is tried",
        "workflows/provision.py",
        "if isinstance(error, ImagePullError) and prepared.choice.another:",
        "if isinstance(error, ImagePullError) and prepared.choice is None:",
        "unit/test_pull_alternatives.py::test_the_next_matching_secret_is_tried_when_the_image_is_refused_with_the_first",
    ),
)
