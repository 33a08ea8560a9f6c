"""The control routes ``/_control/...``: how tests and the demo steer the simulator. RunPod has none of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from local.runpod.faults import Chaos, Quota, failure_from
from local.runpod.paging import PageStyle
from local.runpod.pods import Timing
from local.runpod.state import Account
from local.runpod.wire import ProblemError, Response, answer, read_object

PREFIX = "/_control/"
Body = Mapping[str, Any]


def state(account: Account, _: Body) -> Any:
    """Every pod ever made (true states, terminated ones included) and every credential (no secrets)."""
    now = account.now()
    return {
        "pods": [record.render(now) | {"registry": record.content.get("registry")} for record in account.pods.values()],
        "alive": len(account.alive()),
        "most_alive": account.most_alive,
        "registries": account.registries.list(),
    }


def requests(account: Account, _: Body) -> Any:
    """What was called: method, path, query, status. Bodies hold secrets and are not shown."""
    return {
        "requests": [
            {"method": one.method, "path": one.path, "query": one.query, "status": one.status}
            for one in account.requests
        ]
    }


def add_failure(account: Account, body: Body) -> Any:
    """Script one failure, see ``faults.Failure``."""
    account.faults.scripted.append(failure_from(body))


def clear_faults(account: Account, _: Body) -> Any:
    """Forget all faults, the quota and the latency."""
    account.faults.clear()


def set_chaos(account: Account, body: Body) -> Any:
    """``{share, kinds?, seed?}``: let a share of all calls fail."""
    kinds = {"kinds": tuple(body["kinds"])} if "kinds" in body else {}
    account.faults.chaos = Chaos(share=float(body["share"]), seed=int(body.get("seed", 0)), **kinds)


def set_quota(account: Account, body: Body) -> Any:
    """``{limit, seconds?}``: calls per window."""
    account.faults.quota = Quota(int(body["limit"]), timedelta(seconds=float(body.get("seconds", 60))))


def set_latency(account: Account, body: Body) -> Any:
    """``{seconds}``: how long each call takes (over HTTP only)."""
    account.faults.latency = timedelta(seconds=float(body["seconds"]))


def set_stock(account: Account, body: Body) -> Any:
    """``{type?, count, dataCenter?, cloud?, advertised?}``, see ``Market.set_stock``."""
    account.market.set_stock(
        body.get("type"),
        body["count"],
        center=body.get("dataCenter"),
        cloud=body.get("cloud"),
        advertised=body.get("advertised"),
    )


def set_timing(account: Account, body: Body) -> Any:
    """``{provisioning?, starting?, ports?, visible?}`` in seconds, for pods made from now on."""
    account.timing = Timing(**{name: timedelta(seconds=float(value)) for name, value in body.items()})


def set_pages(account: Account, body: Body) -> Any:
    """``{mode?, at_most?}``, see ``paging.PageStyle``."""
    account.pages = PageStyle(**body)


def set_images(account: Account, body: Body) -> Any:
    """``{missing?: [...], private?: {image: [user, password]}}``."""
    account.images.missing = set(body.get("missing", ()))
    account.images.private = {image: (user, word) for image, (user, word) in body.get("private", {}).items()}


def set_keys(account: Account, body: Body) -> Any:
    """``{keys: [...] | null}``: the API keys that are accepted; null accepts any."""
    account.keys = None if body["keys"] is None else frozenset(body["keys"])


def set_reads_after_delete(account: Account, body: Body) -> Any:
    """``{status: 404 | 200}``: how a terminated pod reads by id (which of them RunPod does is unknown)."""
    account.reads_after_delete = int(body["status"])


def add_pod(account: Account, body: Body) -> Any:
    """Make a pod by hand, as somebody else would in the console; its id."""
    content = {"cloud": "SECURE", "disk": 20, "env": {}, "cpu": {"id": "cpu3c", "vcpuCount": 2}, "image": "x", **body}
    if "gpu" in body:
        del content["cpu"]
    return {"id": account.create_pod(content).id}


def set_pod(account: Account, body: Body) -> Any:
    """``{id, status?, lines?, hidden?}``: force a state, add container output, leave members out of its object."""
    record = account.pods[body["id"]]
    if "status" in body:
        record.force(body["status"], account.now())
    record.lines += [("container", line) for line in body.get("lines", ())]
    record.hidden = frozenset(body.get("hidden", record.hidden))


def remove_pod(account: Account, body: Body) -> Any:
    """``{id}``: end a pod without a call, as the host's loss or a person in the console would."""
    account.terminate(body["id"])


CONTROLS: Mapping[tuple[str, str], Callable[[Account, Body], Any]] = {
    ("GET", "state"): state,
    ("GET", "requests"): requests,
    ("POST", "failures"): add_failure,
    ("DELETE", "failures"): clear_faults,
    ("PUT", "chaos"): set_chaos,
    ("PUT", "quota"): set_quota,
    ("PUT", "latency"): set_latency,
    ("PUT", "stock"): set_stock,
    ("PUT", "timing"): set_timing,
    ("PUT", "pages"): set_pages,
    ("PUT", "images"): set_images,
    ("PUT", "keys"): set_keys,
    ("PUT", "reads-after-delete"): set_reads_after_delete,
    ("POST", "pods"): add_pod,
    ("PUT", "pods"): set_pod,
    ("DELETE", "pods"): remove_pod,
}


def control(account: Account, method: str, path: str, body: bytes) -> Response:
    """Answer a control call: 200 with JSON, 204, or 400 with what is wrong."""
    action = CONTROLS.get((method, path.removeprefix(PREFIX)))
    if action is None:
        raise ProblemError(404, "no such control")
    try:
        told = action(account, read_object(body) if body else {})
    except (KeyError, TypeError, ValueError) as error:
        raise ProblemError(400, f"{type(error).__name__}: {error}") from None
    return answer(204) if told is None else answer(200, told)
