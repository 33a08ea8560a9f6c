"""RunPod's answers as the errors of ``nebula.providers.errors``: one table, read from top to bottom.

Statuses are those of RunPod's guidance for ``POST /v2/pods`` (OpenAPI document, operation createPod).
Texts marked *seen* were observed in public reports; the others are words that RunPod's texts are
expected to hold: the literal ``detail`` of 402, 403, most 422s and of the spend limit is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pydantic import SecretStr

from nebula.http import Answer
from nebula.providers.errors import (
    AuthenticationError,
    ImagePullError,
    InsufficientBalanceError,
    InvalidWorkloadError,
    NoCapacityError,
    ProviderError,
    ProviderUnavailableError,
    QuotaExceededError,
    RateLimitedError,
    RequestRefusedError,
    UnsupportedAcceleratorError,
)
from nebula.providers.redaction import redact
from nebula.providers.runpod.wire import Problem, read_problem, retry_after

_UNAVAILABLE_FROM = 500


class Route(StrEnum):
    """What kind of call was answered; a 400 means different things on each."""

    CREATE_POD = "create pod"
    CREATE_REGISTRY = "create registry credential"
    OTHER = "call"


class ContractError(RequestRefusedError):
    """RunPod calls our request malformed (422 on the schema, 400 on a missing part): a bug of ours, alarm."""


class UndecidedForbiddenError(UnsupportedAcceleratorError):
    """A 403 whose words tell neither key nor pool: a second pool refused so decides (``access.py``)."""


class CredentialMissingError(ProviderUnavailableError):
    """RunPod does not know the registry credential we named: nothing was made, make the credential anew.

    Of the kind "look, then try again", because the next try lends the credential afresh.
    """


@dataclass(frozen=True)
class Rule:
    """One row: statuses, a pattern over all words of the answer in lower case, and the error."""

    statuses: frozenset[int]
    pattern: re.Pattern[str]
    error: type[ProviderError]


def _rule(statuses: Iterable[int], pattern: str, error: type[ProviderError]) -> Rule:
    return Rule(frozenset(statuses), re.compile(pattern), error)


_REFUSALS = (400, 404, 409, 422)
_WITH_FORBIDDEN = (400, 403, 404, 409, 422)
_NEEDS_PROOF = (404, 409)

CREATE_RULES = (
    # Schema violations come first: "$: missing property 'image'" is our bug, not a bad image.
    _rule((422,), r"gpu[./]id\b.*value must be one of", UnsupportedAcceleratorError),
    _rule((400, 422), r"request validation failed|\$[.\w\[\]]*: |additional propert|missing propert", ContractError),
    _rule((400, 422), r"not in (the )?input schema|unrecogni[sz]ed key", ContractError),  # seen, of REST v1
    _rule((400, 422), r"must either provide a template id or pod configuration", ContractError),  # seen: no `disk`
    _rule(
        _REFUSALS,
        r"\bregistry ?(auth|credential)\w*\b.*(not found|does not exist|unknown)",
        CredentialMissingError,
    ),
    # Registry and image words before capacity words: "image not available" is about the image.
    _rule(_REFUSALS, r"\b(images?|manifest|registry)\b|pull access|could not pull", ImagePullError),
    _rule((403,), r"\b(images?|manifest)\b|pull access|could not pull", ImagePullError),
    _rule(
        (400, 403),
        r"insufficient (funds|balance|credit)|not enough (credit|funds|balance)|\bbalance\b",
        InsufficientBalanceError,
    ),
    _rule(
        _WITH_FORBIDDEN,
        r"\bquota\b|spend(ing)? limit|limit (exceeded|reached)|exceed\w* .*\blimit",
        QuotaExceededError,
    ),
    _rule(
        (400, 409),
        r"no longer any instances available"  # seen, also with "with enough disk space"
        r"|no instances (currently )?available"  # seen
        r"|does not have the resources to deploy your pod"  # seen
        r"|not enough free gpus"  # seen
        r"|could not find any pods with required specifications"  # seen
        r"|supply_constraint"  # seen
        r"|no capacity|out of stock",
        NoCapacityError,
    ),
    _rule(
        (403,),
        r"access denied|\bscopes?\b|\bpermissions?\b|\bkey\b|unauthori[sz]ed|read.?only",
        AuthenticationError,
    ),
    _rule(
        (403,),
        r"\bpools?\b|\bgpus?\b|accelerator|\bcommunity\b|\bsecure cloud\b|data ?cent(er|re)",
        UnsupportedAcceleratorError,
    ),
    _rule((403,), r"", UndecidedForbiddenError),
    # How many of it, or what beside it, and not the type: one odd request must not take the type from everybody.
    _rule((400, 422), r"\b(gpu|v?cpu)[ ._]?counts?\b|\bmin[ ._]?(ram|v?cpu|memory)", RequestRefusedError),
    _rule(
        (400, 404, 422),
        r"(invalid|unknown|unsupported) (gpu|cpu|accelerator)"
        r"|\b(gpu|cpu)( type)?\b.*(not found|invalid|unknown|unsupported)",
        UnsupportedAcceleratorError,
    ),
)


def classify(
    answer: Answer,
    *,
    route: Route,
    now: datetime,
    secrets: Iterable[SecretStr] = (),
) -> ProviderError:
    """The error that an answer other than the expected one stands for.

    The text is RunPod's, on one line, without the ``secrets`` that the call carried, at most 512
    characters. An answer that is not RunPod's own (a gateway's page, a redirect, an empty body)
    means unknown, never a refusal.
    """
    problem = read_problem(answer)
    said = redact("; ".join((problem.detail, *problem.errors)), secrets)
    text = f"{answer.status} on {route.value}: {said or 'no detail'}"
    code = str(answer.status)
    if answer.status == 429:
        return RateLimitedError(text, retry_after=retry_after(answer.headers, now), code=code)
    return _by_status(problem, route)(text, code=code)


def _by_status(problem: Problem, route: Route) -> type[ProviderError]:
    status = problem.status
    if status == 401:
        return AuthenticationError
    if status == 402:
        return InsufficientBalanceError
    if not 400 <= status < _UNAVAILABLE_FROM:
        return ProviderUnavailableError
    if route is Route.CREATE_POD:
        return _of_create(problem)
    if status == 403:
        return AuthenticationError
    if route is Route.CREATE_REGISTRY and problem.structured:
        return RequestRefusedError
    return ProviderUnavailableError


def _of_create(problem: Problem) -> type[ProviderError]:
    if problem.status == 413:
        return InvalidWorkloadError
    if problem.status not in _WITH_FORBIDDEN or not _is_an_answer(problem):
        return ProviderUnavailableError
    words = problem.words
    for rule in CREATE_RULES:
        if problem.status in rule.statuses and rule.pattern.search(words):
            return rule.error
    return RequestRefusedError


def _is_an_answer(problem: Problem) -> bool:
    """Whether RunPod refused, rather than something on the way to it (or at a wrong address)."""
    if problem.status in _NEEDS_PROOF:
        return problem.structured
    if problem.status == 403:
        return problem.is_object or not problem.detail
    return problem.is_object
