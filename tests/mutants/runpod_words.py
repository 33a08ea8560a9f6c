"""Mutants of what RunPod is told and of what its answers are taken for."""

from __future__ import annotations

from tests.mutants.mutant import Area, Mutant

_ERRORS = "unit/test_runpod_errors.py"
_BODY = "unit/test_runpod_translate.py"
_PROVISION = "unit/test_runpod_provision.py"

_P = "providers/runpod"
_m = Area("runpod")

MUTANTS: tuple[Mutant, ...] = (
    _m(
        "capacity words win over image words",
        f"{_P}/errors.py",
        r'    _rule(_REFUSALS, r"\b(images?|manifest|registry)\b|pull access|could not pull", ImagePullError),',
        '    _rule((400,), r"no longer any instances|no instances", NoCapacityError),\n'
        r'    _rule(_REFUSALS, r"\b(images?|manifest|registry)\b|pull access|could not pull", ImagePullError),',
        f"{_ERRORS}::test_what_is_said_first_in_the_table_wins",
    ),
    _m(
        "every 400 is capacity",
        f"{_P}/errors.py",
        '        r"|no capacity|out of stock",\n',
        '        r"|no capacity|out of stock|",\n',
        f"{_ERRORS}::test_each_answer_of_a_create_has_one_meaning",
    ),
    _m(
        "a 402 is a refusal of this request",
        f"{_P}/errors.py",
        "    if status == 402:\n        return InsufficientBalanceError\n",
        "",
        f"{_ERRORS}::test_each_answer_of_a_create_has_one_meaning",
    ),
    _m(
        "a second pool refused tells nothing",
        f"{_P}/access.py",
        "            return others\n",
        "            return False\n",
        f"{_PROVISION}::test_a_403_that_tells_nothing_is_about_the_pool_once_and_about_the_key_twice",
    ),
    _m(
        "a 5xx on a credential's create is a refusal",
        f"{_P}/errors.py",
        "_UNAVAILABLE_FROM = 500",
        "_UNAVAILABLE_FROM = 600",
        f"{_ERRORS}::test_a_refused_registry_credential_is_refused_not_unknown",
    ),
    _m(
        "a page's 400 is a refusal",
        f"{_P}/errors.py",
        "    return problem.is_object\n",
        "    return True\n",
        f"{_ERRORS}::test_an_answer_that_is_not_runpods_refuses_nothing",
    ),
    _m(
        "the date form of Retry-After is not read",
        f"{_P}/wire.py",
        "moment = parsedate_to_datetime(text)",
        "return None",
        f"{_ERRORS}::test_a_throttle_says_how_long",
    ),
    _m(
        "texts keep what was sent",
        "providers/redaction.py",
        "text = _without_ends(text.replace(form, _HIDDEN), form)",
        "pass",
        f"{_ERRORS}::test_texts_are_cut_and_free_of_what_was_sent",
        f"{_PROVISION}::test_no_secret_of_the_pod_is_in_the_error",
    ),
    _m(
        "a secret is known in one spelling only",
        "providers/redaction.py",
        "        yield json.dumps(part)[1:-1]\n",
        "",
        "unit/test_redaction.py::test_no_spelling_of_a_secret_comes_back",
    ),
    _m(
        "the pull credential may be quoted",
        f"{_P}/provider.py",
        "(*request.workload.env.values(), *request.secrets)",
        "tuple(request.workload.env.values())",
        "unit/test_redaction.py::test_a_registry_password_that_runpod_quotes_reaches_neither_pod_nor_ledger_nor_log",
    ),
    _m(
        "types refused before the one that came are forgotten",
        f"{_P}/provider.py",
        'update={"refused_types": refused}',
        'update={"refused_types": ()}',
        "property/test_runpod_end_to_end.py::test_a_type_refused_before_the_one_that_came_is_kept_in_the_attempt",
    ),
    _m(
        "disk is left out when not asked for",
        f"{_P}/translate.py",
        '        "disk": default_disk_gb if shape.disk_gb is None else max(1, shape.disk_gb),\n',
        '        **({} if shape.disk_gb is None else {"disk": shape.disk_gb}),\n',
        f"{_BODY}::test_disk_is_always_sent",
    ),
    _m(
        "floors are for the whole pod",
        f"{_P}/translate.py",
        "ceil(shape.memory_gib / count)",
        "ceil(shape.memory_gib)",
        f"{_BODY}::test_cpu_and_memory_are_floors_per_gpu",
    ),
    _m(
        "a command keeps the image's CMD",
        f"{_P}/translate.py",
        '"cmd": list(workload.args or ())}',
        '**({"cmd": list(workload.args)} if workload.args else {})}',
        f"{_BODY}::test_command_and_args_in_every_combination",
    ),
    _m(
        "a port is published unasked",
        f"{_P}/translate.py",
        'return {"ports": list(ports)} if ports else {}',
        'return {"ports": list(ports) or ["8888/http"]}',
        f"{_BODY}::test_no_port_is_published_unless_it_was_opened",
        f"{_PROVISION}::test_the_walk_ends_at_the_first_that_is_had",
    ),
    _m(
        "egress is dropped in silence",
        f"{_P}/translate.py",
        "if workload.egress.mode is not EgressMode.OPEN:",
        "if False:",
        f"{_BODY}::test_what_cannot_be_expressed_is_refused_by_name",
    ),
    _m(
        "a large body is sent all the same",
        f"{_P}/translate.py",
        "if len(body) > MAX_BODY_BYTES:",
        "if False:",
        f"{_BODY}::test_a_body_that_is_too_large_names_what_is_large_and_shows_nothing",
        f"{_BODY}::test_the_limit_counts_bytes_and_is_exact",
    ),
    _m(
        "account secrets can be read through a placeholder",
        f"{_P}/translate.py",
        "if _SECRET_PLACEHOLDER in text",
        "if False",
        f"{_BODY}::test_an_account_secret_cannot_be_read_through_a_placeholder",
    ),
)
