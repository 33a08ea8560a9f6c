"""Mutants of ownership, lists, the walk, the lifecycle and the transport."""

from __future__ import annotations

from tests.mutants.mutant import Area, Mutant

_BODY = "unit/test_runpod_translate.py"
_PROVISION = "unit/test_runpod_provision.py"
_LIST = "unit/test_runpod_listing.py"
_LIFE = "unit/test_runpod_lifecycle.py"
_CATALOG = "unit/test_runpod_catalog.py"
_REGIONS = "unit/test_runpod_regions.py"
_REGISTRY = "unit/test_runpod_registry.py"
_CLIENT = "unit/test_runpod_client.py"
_HTTP = "unit/test_http_client.py"
_MANY = "property/test_runpod_many_claims.py"

_P = "providers/runpod"
_m = Area("runpod")

MUTANTS: tuple[Mutant, ...] = (
    _m(
        "names are not shortened",
        "providers/naming.py",
        '[:room].rstrip("-.")',
        "",
        f"{_PROVISION}::test_long_names_are_shortened_stay_apart_and_are_found",
    ),
    _m(
        "names lose their digits when shortened",
        "providers/naming.py",
        'return f"{readable}-{digits}"',
        'return f"{namespace}-{pod_name}-{digits}"[:limit]',
        f"{_PROVISION}::test_long_names_are_shortened_stay_apart_and_are_found",
    ),
    _m(
        "the bound on a name is one too many",
        f"{_P}/translate.py",
        "MAX_NAME_LENGTH = 191",
        "MAX_NAME_LENGTH = 192",
        f"{_PROVISION}::test_a_name_over_the_limit_is_not_sent",
    ),
    _m(
        "find goes by the claim without the attempt",
        f"{_P}/provider.py",
        "one.mark == mark and",
        "one.mark is not None and one.mark.claim_id == mark.claim_id and",
        f"{_PROVISION}::test_another_mark_is_not_ours",
    ),
    _m(
        "the mark is not sent",
        f"{_P}/translate.py",
        "| marks.as_environment(request.mark)",
        "",
        f"{_BODY}::test_the_least_pod",
        f"{_PROVISION}::test_an_instance_carries_its_mark_and_is_found_by_it",
    ),
    _m(
        "a Pod may set the mark",
        f"{_P}/translate.py",
        "    if reserved:\n",
        "    if False and reserved:\n",
        f"{_BODY}::test_a_pod_may_not_set_the_mark",
    ),
    _m(
        "an incomplete list counts as absence",
        f"{_P}/provider.py",
        "if not listing.complete:",
        "if False:",
        f"{_LIST}::test_a_list_that_cannot_be_finished_proves_no_absence",
    ),
    _m(
        "only the first page is read",
        f"{_P}/paging.py",
        "    if pagination is None:\n",
        "    if True:\n",
        f"{_LIST}::test_every_page_is_read_however_short",
        f"{_LIST}::test_a_mark_on_the_last_page_is_found",
    ),
    _m(
        "a repeated cursor is followed",
        f"{_P}/paging.py",
        "        if cursor in seen:\n",
        "        if False:\n",
        f"{_LIST}::test_a_list_that_cannot_be_finished_proves_no_absence",
    ),
    _m(
        "a stranger's 404 is absence",
        f"{_P}/client.py",
        "answer.status == 404 and problem.structured",
        "answer.status == 404",
        f"{_LIFE}::test_a_strangers_404_is_no_absence",
    ),
    _m(
        "a create is repeated",
        "http.py",
        'frozenset({"GET", "HEAD", "DELETE"})',
        'frozenset({"GET", "HEAD", "DELETE", "POST"})',
        f"{_CLIENT}::test_a_create_is_sent_once",
        f"{_MANY}::test_faults_neither_double_nor_leak",
    ),
    _m(
        "reads are not repeated",
        "http.py",
        "tries: int = 3",
        "tries: int = 1",
        f"{_CLIENT}::test_reads_and_deletes_are_repeated_in_a_small_bound",
    ),
    _m(
        "answers are unbounded",
        "http.py",
        "                if size > self._limits.max_bytes:\n                    raise",
        "                if False:\n                    raise",
        f"{_HTTP}::test_a_body_over_the_bound_is_refused_and_not_asked_for_again",
        f"{_CLIENT}::test_an_answer_over_the_bound_is_refused_whole",
    ),
    _m(
        "the walk stops at the first refusal",
        f"{_P}/walk.py",
        "            if not isinstance(error, _NEXT_TYPE):\n",
        "            if True:\n",
        f"{_PROVISION}::test_types_are_walked_in_order_until_one_is_had",
    ),
    _m(
        "the walk knows no time",
        f"{_P}/walk.py",
        "if number and not has_time():",
        "if False:",
        f"{_PROVISION}::test_the_walk_keeps_within_its_time",
    ),
    _m(
        "an unknown outcome goes on to the next type",
        f"{_P}/walk.py",
        "_NEXT_TYPE = (",
        "_NEXT_TYPE = (ProviderError, ",
        f"{_PROVISION}::test_what_holds_for_every_type_ends_the_walk",
    ),
    _m(
        "an unknown state is an end",
        f"{_P}/instances.py",
        "STATES.get(status, InstanceState.PENDING)",
        "STATES.get(status, InstanceState.FAILED)",
        f"{_LIFE}::test_states_are_mapped_and_unknown_ones_wait",
    ),
    _m(
        "inner addresses are shown",
        f"{_P}/instances.py",
        "ipaddress.ip_address(address).is_global",
        "bool(ipaddress.ip_address(address))",
        "unit/test_runpod_endpoints.py::test_only_public_addresses_of_published_ports_are_shown",
    ),
    _m(
        "blank regions widen to anywhere",
        f"{_P}/regions.py",
        "        return ()\n",
        "        return (ANYWHERE,)\n",
        f"{_REGIONS}::test_blank_words_never_widen_to_anywhere",
    ),
    _m(
        "regions are sent as written",
        f"{_P}/regions.py",
        "word.strip().upper()",
        "word.strip()",
        f"{_REGIONS}::test_an_entry_is_one_candidate",
    ),
    _m(
        "a closed lane with a price is offered",
        f"{_P}/catalog.py",
        "row.get(lane) is not True or price is None",
        "price is None",
        f"{_CATALOG}::test_a_lane_that_is_not_sold_is_not_offered_though_it_has_a_price",
    ),
    _m(
        "the catalog is asked for each time",
        f"{_P}/catalog.py",
        "FRESH_FOR = timedelta(minutes=3)",
        "FRESH_FOR = timedelta(0)",
        f"{_CATALOG}::test_a_warm_process_asks_once_in_three_minutes",
    ),
    _m(
        "a failed credential create is not looked for again",
        f"{_P}/registry.py",
        "found = self._found_after(name)",
        "found = None",
        f"{_REGISTRY}::test_a_failed_create_takes_what_stands_under_the_name",
    ),
    _m(
        "a failed create keeps the cached credential",
        f"{_P}/provider.py",
        "self._registry.forget_id(request.registry_credential_id)",
        "pass",
        f"{_PROVISION}::test_a_failed_create_forgets_the_credential_it_used",
    ),
    _m(
        "an empty password is an anonymous pull",
        f"{_P}/registry.py",
        "        if missing:\n",
        "        if False:\n",
        f"{_REGISTRY}::test_a_missing_part_is_an_error",
    ),
    _m(
        "a refused delete is success",
        f"{_P}/provider.py",
        "            if not self._is_gone(instance_id):\n                raise",
        "            return",
        f"{_LIFE}::test_a_refused_delete_of_what_lives_is_no_success",
    ),
)
