"""Whatever RunPod, a proxy or a stranger answers: only the documented errors, never a crash, never a false absence."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from nebula.domain.instance import Instance, InstanceListing
from nebula.http import HttpClient, Limits
from nebula.providers.base import OfferingList
from nebula.providers.errors import ProviderError
from nebula.providers.runpod import RunPodProvider, build
from nebula.providers.runpod.instances import to_instance
from pydantic import SecretStr
from requests import PreparedRequest, Response, Session
from requests.adapters import BaseAdapter

from tests.support.runpod import CPU_ONLY, KEY, RunPodWorld, mark, request

SECRET = "hunter2-hunter2"
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)  # half surrogates too


def json_of(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Any JSON value made with these texts."""
    return st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
        max_leaves=12,
    )


JSON = json_of(st.text(max_size=20))
WILD = json_of(ANY_TEXT)
POD = dict.fromkeys(
    ("name", "status", "env", "cost", "gpu", "cpu", "dataCenterId", "ports", "runtime", "createdAt", "startedAt"), JSON
)
ROW = dict.fromkeys(
    ("id", "name", "price", "secure", "community", "maxCount", "availability", "dataCenters", "ramGbPerVcpu", "vcpu"),
    JSON,
)
PROBLEM = dict.fromkeys(("title", "status", "detail", "errors", "error", "message"), WILD)
LIST_ROW = st.fixed_dictionaries({}, optional={"id": WILD, **dict.fromkeys(POD, WILD)})
BAD_BODIES = st.one_of(
    WILD.map(lambda content: json.dumps(content).encode()),
    st.fixed_dictionaries({}, optional=PROBLEM).map(lambda content: json.dumps(content).encode()),
    st.lists(LIST_ROW, max_size=3).map(lambda rows: json.dumps({"pods": rows, "registries": rows}).encode()),
    LIST_ROW.map(lambda row: json.dumps(row).encode()),
    st.binary(max_size=64),
    st.just(b"[" * 100_000),
    st.just(b'{"pods": [' + b'{"id": "a", "env": {}},' * 50_000),
    st.just(b"1" * 5000),
    st.just(b'{"id": NaN, "pods": [Infinity]}'),
    st.just(b'{"pods": [], "pods": [{"id": "a"}]}'),
    st.just("<html>é</html>".encode("utf-16")),
)
HEADERS = st.dictionaries(
    st.sampled_from(["Retry-After", "RateLimit", "RateLimit-Policy", "Content-Type"]), st.text(max_size=60), max_size=3
)
STATUSES = st.one_of(
    st.sampled_from([200, 201, 204, 400, 401, 402, 403, 404, 409, 413, 422, 429, 500, 503]), st.integers(100, 599)
)


class Answering(BaseAdapter):
    """Answers every request with the next of some answers, the last one again and again."""

    def __init__(self, answers: list[tuple[int, dict[str, str], bytes]]) -> None:
        super().__init__()
        self.answers = answers

    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
        status, headers, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        response = Response()
        response.status_code = status
        response.headers.update(headers)
        response.raw = io.BytesIO(body)
        response.url = request.url or ""
        return response

    def close(self) -> None:
        pass


def provider(answers: list[tuple[int, dict[str, str], bytes]]) -> RunPodProvider:
    world = RunPodWorld()
    session = Session()
    session.mount("http://", Answering(answers))
    limits = Limits(max_bytes=1_000_000, tries=2)
    http = HttpClient(session, limits=limits, sleep=lambda _: None)
    return build(api_key=SecretStr(KEY), base_url="http://x", clock=world.clock, telemetry=world.telemetry, http=http)


def calls(of: RunPodProvider) -> list[Callable[[], Any]]:
    user, word = SecretStr("user-name"), SecretStr(SECRET)
    return [
        lambda: of.provision(request(env={"TOKEN": SECRET}, types=("a", "b"))),
        lambda: of.provision(request(shape=CPU_ONLY, types=("cpu3c",))),
        lambda: of.find(mark()),
        lambda: of.get("abc"),
        of.list_instances,
        lambda: of.terminate("abc"),
        of.offerings,
        lambda: of.ensure_registry_credential("nebula-x-1", user, word),
        of.list_registry_credentials,
        lambda: of.delete_registry_credential("abc"),
        lambda: list(of.logs("abc")),
    ]


def shown(call: Callable[[], Any]) -> str:
    """What a call that fails says; empty when it succeeds. Any other error than ours fails the test."""
    try:
        call()
    except ProviderError as error:
        return " ".join((str(error), repr(error), *error.failures))
    return ""


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(STATUSES, HEADERS, BAD_BODIES), min_size=1, max_size=4))
def test_only_documented_errors_come_out(answers: list[tuple[int, dict[str, str], bytes]]) -> None:
    for number in range(len(calls(provider(answers)))):
        text = shown(calls(provider(list(answers)))[number])
        assert SECRET not in text
        assert KEY not in text


@settings(max_examples=60, deadline=None)
@given(st.tuples(st.sampled_from([400, 403, 422, 500, 201, 404]), HEADERS, st.text(max_size=700)))
def test_what_was_sent_never_comes_back(answer: tuple[int, dict[str, str], str]) -> None:
    status, headers, padding = answer
    body = json.dumps({"title": "t", "status": status, "detail": f"{padding} {SECRET} {KEY}"}).encode()
    of = provider([(status, headers, body)])
    text = shown(lambda: of.provision(request(env={"TOKEN": SECRET}, types=("a",))))
    assert text
    assert SECRET not in text
    assert KEY not in text


@settings(max_examples=200, deadline=None)
@given(st.fixed_dictionaries({"id": st.text(min_size=1)}, optional=POD))
def test_any_object_with_an_id_is_an_instance(pod: dict[str, Any]) -> None:
    instance = to_instance(pod)
    assert isinstance(instance, Instance)
    assert instance.id == pod["id"]
    assert instance.cost_per_hour is None or instance.cost_per_hour >= 0


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.fixed_dictionaries({}, optional={"id": JSON, **POD}) | JSON, max_size=5),
    st.none() | st.just({"hasNextPage": False}) | JSON,
)
def test_a_list_is_complete_only_when_every_row_was_understood(rows: list[Any], pagination: Any) -> None:
    body = json.dumps({"pods": rows, "pagination": pagination}).encode()
    of = provider([(200, {}, body), (404, {}, b"<html>")])
    try:
        listing = of.list_instances()
    except ProviderError:
        return
    assert isinstance(listing, InstanceListing)
    if "" in listing.complete_scopes:
        assert all(isinstance(row, dict) and isinstance(row.get("id"), str) and row["id"] for row in rows)
        assert all("env" in row and isinstance(row["env"], dict | None) for row in rows)
        assert {row["id"] for row in rows} == {one.id for one in listing.instances}
    else:
        assert listing.failed_scopes[""]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.fixed_dictionaries({}, optional=ROW) | JSON, max_size=5))
def test_any_catalog_gives_offerings_with_a_price(rows: list[Any]) -> None:
    body = json.dumps({"gpus": rows, "cpus": rows}).encode()
    listed = provider([(200, {}, body)]).offerings()
    assert isinstance(listed, OfferingList)
    assert listed.offerings
    assert all(offering.price_per_hour > 0 for offering in listed.offerings)
