"""``make demo``: three Pods live a whole life on this machine, and what is claimed is measured.

One asks for a GPU whose first choice is out of stock, one for none, one for a private image. They are placed,
created, released, run, deleted and given back by the real functions, on the real template. Meanwhile the private
image's password is rotated, and a fourth Pod pulls with the new one: the old one goes with its last workload, the
new one stays. The last line on stdout is one JSON object about the three; the exit status is 0 only if RunPod's and
the cluster's own words bear all of it out.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nebula.domain.claim import Claim, claim_id_for
from nebula.kubernetes import names
from nebula.stores.dynamo_claims import DynamoClaimStore

from local.aws import client
from local.deployment import ROOT
from local.kubectl import Kubectl
from local.restore import fixtures
from local.rotation import NEW_PASSWORD, Rotation
from local.runpod.market import GPUS
from local.runpod_console import RunPodConsole
from local.stack import Stack, StackFailedError
from local.timeline import Timeline, View

DIRECTORY = ROOT / ".local" / "demo"
#: In the demo a credential that nobody uses is retired at once.
PARAMETERS = {"UnusedAfter": "PT0S", "SupersededAfter": "PT0S", "RetirementGrace": "PT0S"}
_STEP_SECONDS = 90.0
_LOOK_SECONDS = 0.15
_OUT_OF_STOCK = "US-KS-2"
_SCARCE = "H100"
_PRIVATE = "trainer"
_ROTATED = "trainer-2"
_RETIRE = {
    "source": "nebula.schedule",
    "detail-type": "Credential Retirement Scheduled",
    "detail": {"schema_version": 1},
}


class StepFailedError(Exception):
    """Something did not come about in time; the message says what, and what to look at."""


@dataclass(frozen=True)
class Result:
    """What was measured of the three Pods: ``credentials_retired`` are those that were lent to them and went."""

    pods: int
    running: int
    failovers: int
    instances_leaked: int
    credentials_retired: int
    elapsed_s: float

    def ok(self) -> bool:
        """Whether it is what the demo promises."""
        return (self.running, self.failovers, self.instances_leaked, self.credentials_retired) == (self.pods, 1, 0, 1)


class Demo:
    """One run on a stack that is up."""

    def __init__(self, stack: Stack, timeline: Timeline) -> None:
        endpoints = stack.endpoints
        self._stack = stack
        self._timeline = timeline
        self._cluster = endpoints.cluster
        self._kubectl = Kubectl(endpoints)
        self._console = RunPodConsole(endpoints)
        deployment = stack.worker.deployment
        table = deployment.outputs["ClaimsTableName"]
        self._claims = DynamoClaimStore(client("dynamodb", endpoints), table)
        self._lambda = client("lambda", endpoints.model_copy(update={"aws": stack.worker.lambda_url}))
        self._uids: dict[str, str] = {}
        self._instances: dict[str, str] = {}
        self._rotation = Rotation(stack, timeline)

    def run(self) -> Result:
        """Create, watch, delete, count. ``StepFailedError``."""
        self._prepare()
        self._create()
        self._until("every Pod runs", self._all_running)
        three = tuple(self._uids)
        running = self._running()
        refused = [one for one in self._console.requests("POST", "/v2/pods") if one["status"] != 201]
        failovers = self._failovers(len(refused))
        lent = [registry["name"] for registry in self._console.registries()]
        self._timeline.say("registry", "lent", f"{', '.join(lent)}", "plain")
        self._rotate()
        self._delete(*three)
        retired = self._retire_the_old()
        self._delete(_ROTATED)
        self._retire("the lent credential is gone", lambda: not self._rotation.lent())
        self._timeline.say("registry", "retired", "RunPod keeps no credential of ours any more", "good")
        return Result(
            pods=len(three),
            running=running,
            failovers=failovers,
            instances_leaked=len(self._console.alive()),
            credentials_retired=retired,
            elapsed_s=round(self._timeline.elapsed(), 1),
        )

    def _rotate(self) -> None:
        """A new password while a Pod lives on the old one: the next Pod gets it at once, and both are kept."""
        pod = _pods()[_PRIVATE]
        pod["metadata"]["name"] = _ROTATED
        self._rotation.rotate(pod["spec"]["imagePullSecrets"][0]["name"], _image(pod))
        self._uids[_ROTATED] = self._kubectl.create(pod)["metadata"]["uid"]
        self._until("the Pod with the new password runs", self._all_running)
        used = {name: self._rotation.used_by(self._instances[name]) for name in (_PRIVATE, _ROTATED)}
        _expect(used[_PRIVATE] in self._rotation.old, f"{_PRIVATE} runs on the old credential")
        _expect(used[_ROTATED] not in self._rotation.old, f"{_ROTATED} was pulled with the new credential")
        self._retire("both credentials are kept", lambda: self._rotation.lent() == frozenset(used.values()))
        shown = self._rotation.show("while a Pod lives on the old password")
        _expect(NEW_PASSWORD not in shown and '"Superseded"' in shown, "the ledger tells the old one from the new")

    def _retire_the_old(self) -> int:
        """Its last workload is gone: the old credential goes, the new one stays; how many went."""
        kept = self._rotation.lent() - self._rotation.old
        self._retire("the old credential is gone", lambda: not self._rotation.lent() & self._rotation.old)
        _expect(self._rotation.lent() == kept and self._running() == 1, f"{_ROTATED} runs, and its credential is kept")
        self._timeline.say(
            "registry", "retired", "the old credential, with its last workload; the new one stays", "good"
        )
        self._rotation.show("after that")
        return len(self._rotation.old - self._rotation.lent())

    def _prepare(self) -> None:
        """Policy, configuration and a registry login; the stock of one GPU in one data center runs out."""
        login: tuple[str, str] | None = None
        for obj in fixtures():
            if obj["kind"] == "Pod":
                continue
            self._kubectl.create(obj)
            if obj["kind"] == "Secret":
                login = _login(obj)
        private = _image(_pods()[_PRIVATE])
        self._console.set("images", private={private: login} if login else {})
        # The catalog still shows stock, as a catalog that is a minute old would.
        for gpu in GPUS:
            if _SCARCE in gpu.id:
                self._console.set("stock", type=gpu.id, count=0, dataCenter=_OUT_OF_STOCK, advertised="HIGH")
        self._timeline.say(
            "runpod", "stock", f"no {_SCARCE} left in {_OUT_OF_STOCK}, though its catalog still shows some"
        )

    def _create(self) -> None:
        for name, pod in _pods().items():
            created = self._kubectl.create(pod)
            self._uids[name] = created["metadata"]["uid"]

    def _delete(self, *pods: str) -> None:
        for name in pods:
            self._kubectl.delete("Pod", name)
        self._until("every deleted Pod and its instance are gone", lambda: self._all_gone(pods))

    def _until(self, what: str, reached: Callable[[], bool]) -> None:
        until = time.monotonic() + _STEP_SECONDS
        while not reached():
            if time.monotonic() > until:
                raise StepFailedError(f"not within {_STEP_SECONDS:g} s: {what}\n{self._whereabouts()}")
            time.sleep(_LOOK_SECONDS)

    def _look(self) -> dict[str, View]:
        instances = frozenset(pod["id"] for pod in self._console.alive())
        views = {}
        for name, uid in self._uids.items():
            pod = self._kubectl.get("Pod", name)
            views[name] = View(pod, self._claim(uid), instances)
            self._timeline.note(name, views[name])
        return views

    def _claim(self, uid: str) -> Claim | None:
        return self._claims.get(claim_id_for(self._cluster, uid))

    def _all_running(self) -> bool:
        self._look()
        return self._running() == len(self._uids)

    def _running(self) -> int:
        """Pods that the cluster calls Running and Ready and whose instance RunPod calls RUNNING."""
        states = {pod["id"]: pod["status"] for pod in self._console.alive()}
        count = 0
        for name in self._uids:
            pod = self._kubectl.get("Pod", name) or {"metadata": {}, "status": {}}
            instance = (pod["metadata"].get("annotations") or {}).get(names.ANNOTATION_INSTANCE_ID, "")
            self._instances[name] = instance
            count += _ready(pod) and states.get(instance) == "RUNNING"
        return count

    def _failovers(self, refused: int) -> int:
        """Pods that were refused in one place and ran in another: by their claims, and by RunPod's own refusals."""
        places = {pod["id"]: pod["dataCenterId"] for pod in self._console.state()["pods"]}
        count = 0
        for name, uid in self._uids.items():
            claim = self._claim(uid)
            tried = {attempt.candidate.region for attempt in claim.attempts} if claim else set()
            count += len(tried) > 1 and places.get(self._instances[name]) != _OUT_OF_STOCK
        return min(count, refused)

    def _all_gone(self, pods: Sequence[str]) -> bool:
        views = self._look()
        alive = {pod["id"] for pod in self._console.alive()}
        gone = (views[name].pod is None and self._instances[name] not in alive for name in pods)
        closed = ((claim := views[name].claim) is not None and not claim.live for name in pods)
        return all(gone) and all(closed)

    def _retire(self, what: str, reached: Callable[[], bool]) -> None:
        """What the schedule does each hour, now."""
        self._timeline.say("registry", "retiring", "the retirement's schedule fires")
        answer = self._lambda.invoke(FunctionName="credential_retirement", Payload=json.dumps(_RETIRE))
        if "FunctionError" in answer:
            raise StepFailedError(f"credential_retirement failed; see {self._stack.log('worker')}")
        self._until(what, reached)

    def _whereabouts(self) -> str:
        lines = []
        for name, view in self._look().items():
            phase = "no claim" if view.claim is None else f"claim {view.claim.phase}: {view.claim.message}"
            pod = "gone" if view.pod is None else (view.pod.get("status") or {}).get("phase")
            lines.append(f"  {name}: Pod {pod}, {phase}")
        return "\n".join([*lines, f"  what the functions logged: {self._stack.log('worker')}"])


def _pods() -> dict[str, dict[str, Any]]:
    """The fixtures' Pods; the one with the private image asks for a GPU that is not scarce."""
    pods = {obj["metadata"]["name"]: obj for obj in fixtures() if obj["kind"] == "Pod"}
    pods[_PRIVATE]["metadata"]["labels"][names.LABEL_ACCELERATOR_TYPE] = "l40s"
    return pods


def _image(pod: dict[str, Any]) -> str:
    return str(pod["spec"]["containers"][0]["image"])


def _login(secret: dict[str, Any]) -> tuple[str, str]:
    config = json.loads(base64.b64decode(secret["data"][".dockerconfigjson"]))
    (entry,) = config["auths"].values()
    return entry["username"], entry["password"]


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise StepFailedError(f"not so: {what}")


def _ready(pod: dict[str, Any]) -> bool:
    status = pod.get("status") or {}
    conditions = {c["type"]: c["status"] for c in status.get("conditions") or []}
    return status.get("phase") == "Running" and conditions.get("Ready") == "True"


def run(directory: Path = DIRECTORY) -> int:
    """Set up, run, tear down; the exit status."""
    print("starting AWS, RunPod and Kubernetes on this machine ...", file=sys.stderr, flush=True)
    try:
        with Stack(directory, parameters=PARAMETERS) as stack:
            timeline = Timeline(color=sys.stderr.isatty())
            result = Demo(stack, timeline).run()
    except (StackFailedError, StepFailedError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print(json.dumps(result.__dict__, separators=(",", ":")))
    if not result.ok():
        print(f"demo: that is not what should come out; see {directory}/worker.log", file=sys.stderr)
    return 0 if result.ok() else 1


if __name__ == "__main__":
    sys.exit(run())
