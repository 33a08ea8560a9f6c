"""The ``/v2`` routes: method and path to an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import unquote

from local.runpod import catalog, schema
from local.runpod.paging import cut
from local.runpod.state import Account
from local.runpod.wire import ProblemError, Response, answer, read_object


class Call(NamedTuple):
    """One call; ``id`` is the one in its path, decoded, or empty."""

    account: Account
    query: Mapping[str, str]
    body: bytes
    id: str


Route = Callable[[Call], Response]


def _create_pod(call: Call) -> Response:
    content = read_object(call.body)
    schema.check_pod(content)
    return answer(201, call.account.create_pod(content).render(call.account.now()))


def _list_pods(call: Call) -> Response:
    now = call.account.now()
    return answer(
        200, cut([record.render(now) for record in call.account.listed()], "pods", call.query, call.account.pages)
    )


def _get_pod(call: Call) -> Response:
    return answer(200, call.account.pod(call.id).render(call.account.now()))


def _delete_pod(call: Call) -> Response:
    call.account.terminate(call.id)
    return answer(204)


def _act(call: Call) -> Response:
    content = read_object(call.body)
    schema.validate(content, schema.ACTION, ("action",))
    record = call.account.pod(call.id)
    if content["action"] == "terminate":
        call.account.terminate(call.id)
        return answer(204)
    record.act(content["action"], call.account.now())
    return answer(200, record.render(call.account.now()))


def _logs(call: Call) -> Response:
    tail = call.query.get("tail", "100")
    if not tail.isdigit() or int(tail) > 5000:
        raise ProblemError(422, "Request validation failed.", errors=["tail: value must be between 0 and 5000"])
    source = call.query.get("source")
    record = call.account.pod(call.id)
    lines = [one for one in record.lines if source in (None, one[0])]
    stamp = call.account.now().isoformat(timespec="seconds")
    events = []
    for number, (kind, line) in enumerate(lines[max(0, len(lines) - int(tail)) :] if int(tail) else []):
        data = json.dumps({"ts": stamp, "source": kind, "line": line})
        events.append(f"id: {stamp}/{number:012d}\ndata: {data}\n\n")
    return Response(200, {"Content-Type": "text/event-stream"}, "".join(events).encode())


def _create_registry(call: Call) -> Response:
    content = read_object(call.body)
    schema.validate(content, schema.CREATE_REGISTRY, ("name", "username", "password"))
    return answer(201, call.account.registries.create(content))


def _list_registries(call: Call) -> Response:
    # Whether these have pages is unknown; here they have none unless a cursor is asked for.
    return answer(200, {"registries": call.account.registries.list()})


def _get_registry(call: Call) -> Response:
    return answer(200, call.account.registries.show(call.id))


def _delete_registry(call: Call) -> Response:
    call.account.registries.delete(call.id)
    return answer(204)


def _gpus(call: Call) -> Response:
    return answer(200, catalog.gpu_types(call.account.market, call.query))


def _gpu(call: Call) -> Response:
    return answer(200, catalog.gpu_type(call.account.market, call.query, call.id))


def _cpus(call: Call) -> Response:
    return answer(200, catalog.cpu_types(call.account.market, call.query))


def _centers(call: Call) -> Response:
    return answer(200, catalog.data_centers(call.account.market))


_ID = r"/(?P<id>[^/]+)"
ROUTES: tuple[tuple[str, dict[str, Route]], ...] = (
    ("/v2/pods", {"GET": _list_pods, "POST": _create_pod}),
    (f"/v2/pods{_ID}", {"GET": _get_pod, "DELETE": _delete_pod}),
    (f"/v2/pods{_ID}/action", {"POST": _act}),
    (f"/v2/pods{_ID}/logs", {"GET": _logs}),
    ("/v2/registries", {"GET": _list_registries, "POST": _create_registry}),
    (f"/v2/registries{_ID}", {"GET": _get_registry, "DELETE": _delete_registry}),
    ("/v2/catalog/gpus", {"GET": _gpus}),
    (f"/v2/catalog/gpus{_ID}", {"GET": _gpu}),
    ("/v2/catalog/cpus", {"GET": _cpus}),
    ("/v2/catalog/datacenters", {"GET": _centers}),
)


def dispatch(account: Account, method: str, path: str, query: Mapping[str, str], body: bytes) -> Response:
    """Answer an authenticated call. Raises ``ProblemError``."""
    for pattern, methods in ROUTES:
        match = re.fullmatch(pattern, path)
        if match is None:
            continue
        route = methods.get(method)
        if route is None:
            raise ProblemError(405, "method not allowed", headers={"Allow": ", ".join(sorted(methods))})
        return route(Call(account, query, body, unquote(match.groupdict().get("id", ""))))
    raise ProblemError(404, "resource not found")
