"""Mutants of a claim's life: leases, absences, deletes, budgets and orphans."""

from __future__ import annotations

from tests.mutants.mutant import Area, Mutant

_GUARDS = "unit/test_lifecycle_guards.py"
_MOVES = "unit/test_loop_moves.py"
_IDENTITY = "unit/test_loop_identity.py"
_ORPHANS = "unit/test_loop_orphans.py"
_VANISHING = "unit/test_loop_vanishing.py"
_VIEWS = "property/test_partial_views.py"
_SEEN = "lifecycle/observation.py"

_m = Area("lifecycle")

MUTANTS: tuple[Mutant, ...] = (
    _m(
        "a lease holds nobody off",
        "workflows/provision.py",
        "claim.phase is Phase.PROVISIONING and not _leased(claim, services.clock.now())",
        "claim.phase is Phase.PROVISIONING",
        f"{_GUARDS}::test_a_delivery_inside_a_live_lease_asks_nobody",
    ),
    _m(
        "one absence is believed",
        _SEEN,
        "return attempt.absent_since is not None and began_at - attempt.absent_since >= gap",
        "return True",
        f"{_IDENTITY}::test_one_absence_is_not_yet_a_loss",
    ),
    _m(
        "the provider's delay is ignored",
        _SEEN,
        "attempt.lease_until + visibility_delay",
        "attempt.lease_until",
        f"{_MOVES}::test_an_incomplete_list_or_one_of_before_the_delay_loses_nothing",
    ),
    _m(
        "an incomplete list is believed",
        _SEEN,
        "return listing.is_complete(attempt.scope) and listing.began_at >=",
        "return listing.began_at >=",
        f"{_VIEWS}::test_throttling_one_of_two_scopes_changes_no_pods_status",
        f"{_VIEWS}::test_failing_one_page_of_a_list_changes_no_pods_status",
    ),
    _m(
        "an accepted delete counts as gone",
        "workflows/terminate.py",
        '{"delete_accepted_at": attempt.delete_accepted_at or now}',
        '{"delete_accepted_at": now, "outcome": "Gone"}',
        f"{_VIEWS}::test_an_accepted_delete_is_not_gone_while_its_scope_cannot_be_listed",
    ),
    _m(
        "a list from before the delete confirms it",
        "lifecycle/assessment.py",
        "accepted is not None and listing.began_at >= accepted",
        "accepted is not None",
        f"{_MOVES}::test_a_list_that_began_before_the_delete_was_accepted_says_nothing",
    ),
    _m(
        "an absence is not confirmed by id",
        "workflows/settle.py",
        "if assessment.confirm and not _confirmed_absent",
        "if False and not _confirmed_absent",
        f"{_GUARDS}::test_an_absence_from_lists_is_believed_only_when_the_id_is_gone_too",
    ),
    _m(
        "an end is not sticky",
        _SEEN,
        "    if before.state in _ENDED:\n",
        "    if False:\n",
        f"{_MOVES}::test_an_end_is_sticky_whatever_is_reported_later",
    ),
    _m(
        "a Pod is deleted whatever its uid",
        "kubernetes/client.py",
        ', "preconditions": {"uid": uid}}',
        "}",
        "contract/test_kubernetes_contract_deletion.py::test_client_deletes_one_uid_and_says_when_it_was_gone",
    ),
    _m(
        "a Pod of the same name is the same Pod",
        "workflows/pod_checks.py",
        "pod is None or pod.uid != claim.pod_uid",
        "pod is None",
        "unit/test_loop_traffic.py::test_a_pod_recreated_under_its_name_is_another_claim_and_hears_nothing_of_the_former",
    ),
    _m(
        "another attempt's mark will do",
        _SEEN,
        "instance.mark == mark or",
        "instance.mark is not None or",
        "unit/test_loop_marks.py::test_an_id_with_another_attempt_s_mark_is_not_this_attempt_s",
    ),
    _m(
        "another cluster's silence is believed",
        "workflows/pod_checks.py",
        "if claim.cluster_uid and api.cluster_uid()",
        "if False and api.cluster_uid()",
        f"{_GUARDS}::test_a_delete_told_of_another_cluster_s_pod_ends_nothing",
    ),
    _m(
        "another account's silence is believed",
        "workflows/accounts.py",
        "return services.sightings.known(",
        "return True or services.sightings.known(",
        f"{_IDENTITY}::test_a_new_key_that_shows_nothing_of_ours_is_unknown",
    ),
    _m(
        "a mass vanishing is believed",
        "lifecycle/assessment.py",
        "return expected >= 5 and missing * 2 > expected",
        "return False",
        f"{_VANISHING}::test_pods_that_vanished_at_once_are_unknown_and_kept_at_first",
        f"{_VANISHING}::test_instances_that_vanished_at_once_keep_their_pods_running_at_first",
    ),
    _m(
        "a claim is given back before the block stands",
        "workflows/rejection.py",
        "    block = _write_block(services, claim, error, pool)\n",
        "    block = None\n",
        f"{_GUARDS}::test_the_block_stands_before_the_claim_moves",
    ),
    _m(
        "the ledger is not asked after a create",
        "workflows/provision.py",
        "        return _lost_lease(services, claim, provider, instance, conflict.current)\n",
        "        return claim\n",
        "unit/test_lost_lease.py::test_the_extra_instance_is_ended_at_once_or_by_the_sweep",
    ),
    _m(
        "a due claim is not moved ahead",
        "workflows/announce.py",
        " or not services.claims.touch(due, now + ANNOUNCEMENT_HOLD)",
        "",
        f"{_GUARDS}::test_a_due_claim_is_announced_once_a_minute",
    ),
    _m(
        "budget is not freed",
        "stores/budgeting.py",
        "        if delta\n",
        "        if delta > 0\n",
        f"{_GUARDS}::test_a_terminated_claim_frees_its_budget_once",
    ),
    _m(
        "budget is freed twice",
        "stores/budgeting.py",
        "= -previous.committed_per_hour",
        "= -2 * previous.committed_per_hour",
        f"{_GUARDS}::test_a_terminated_claim_frees_its_budget_once",
    ),
    _m(
        "a new attempt waits for none before it",
        "lifecycle/transitions.py",
        '    if claim.unconfirmed:\n        raise IllegalMoveError("an earlier',
        '    if False:\n        raise IllegalMoveError("an earlier',
        "unit/test_transitions.py::test_a_new_attempt_waits_until_the_earlier_one_is_confirmed_gone",
    ),
    _m(
        "an orphan is reaped on first sight",
        "workflows/orphans.py",
        "return now - first >= SEEN_APART",
        "return True",
        f"{_ORPHANS}::test_one_look_is_never_enough_however_old_it_is",
    ),
    _m(
        "a young orphan is reaped",
        "workflows/orphans.py",
        "now - _born(instance, first) < UNCLAIMED_AGE",
        "False",
        f"{_ORPHANS}::test_an_unclaimed_instance_is_left_alone_while_it_is_young",
    ),
    _m(
        "what is foreign is reaped",
        "workflows/orphans.py",
        "instance.mark is None or instance.mark.installation != services.installation",
        "instance.mark is None",
        f"{_ORPHANS}::test_another_installation_s_instances_are_foreign",
    ),
)
