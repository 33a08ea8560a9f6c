"""The dry run: same engine, every input problem an answer, nothing written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nebula.clock import ManualClock
from nebula.kubernetes.manifest import pod_from_manifest
from nebula.kubernetes.pod import MalformedPodError
from nebula.workflows.explain import explain_pod

from cli import explain as command
from cli.__main__ import main
from tests.support.placing import block
from tests.support.world import CLUSTER, START, World, pod_object, pool_object


def asked(world: World, pod: Any = None, pool: Any = None, cluster: str = "") -> dict[str, Any]:
    return explain_pod(world.services("placement"), pod or pod_object(), pool, cluster)


def test_the_answer_is_the_decision_that_placement_then_takes() -> None:
    world = World()
    answer = asked(world)
    assert answer["placed"]
    world.create_pod()
    world.pump()
    assert world.claim().decision == ()
    chosen = answer["candidates"][0]
    candidate = world.claim().attempts[0].candidate
    assert (chosen["provider"], chosen["region"]) == (candidate.provider, candidate.region)
    assert chosen["price_per_hour"]["total"] == "2.00"


def test_a_dry_run_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    methods: list[str] = []
    handle = world.emulator.handle

    def counting(method: str, *rest: Any) -> Any:
        methods.append(method)
        return handle(method, *rest)

    monkeypatch.setattr(world.emulator, "handle", counting)
    asked(world)
    assert set(methods) == {"GET"}
    assert (world.claims.writes, world.ticks.enqueued, world.publisher.events) == (0, 0, [])


def test_live_blocks_budget_and_missing_keys_are_in_the_answer() -> None:
    world = World(pool=pool_object("simulated", "modal", budgetPerHour="3"))
    world.create_pod()
    world.pump()
    answer = asked(world)
    assert [c["reason"] for c in answer["candidates"]] == ["budget_exhausted", "provider_unconfigured"]
    now = world.clock.now()
    world.blocks.put(block("simulated", created_at=now, expires_at=now.replace(minute=1)))
    unlimited = pool_object("simulated", "modal")
    refused = asked(world, pool=unlimited)["candidates"][0]
    assert (refused["reason"], refused["frees_at"]) == ("blocked", "2026-11-01T12:01:00Z")
    assert refused["price_per_hour"]["total"] == "2.00"


def test_a_waiting_pods_own_exclusions_count() -> None:
    world = World()
    created = world.create_pod()
    world.blocks.put(block("simulated", created_at=START, expires_at=START.replace(minute=1)))
    world.pump()
    claim = world.claim()
    key = "simulated/H100:1/cpu=0/mem=0Gi/disk=default/OnDemand/any"
    world.claims.save(claim, claim.model_copy(update={"exclusions": (key,)}))
    world.clock.advance(START.replace(minute=2) - START)
    assert asked(world, created)["candidates"][0]["reason"] == "excluded"
    assert asked(world)["candidates"][0]["reason"] is None


@pytest.mark.parametrize(
    ("pod", "pool", "reason"),
    [
        ({"kind": "Pod"}, None, "InvalidPod"),
        ({"kind": "Service", "metadata": {"name": "x"}, "spec": {}}, None, "InvalidPod"),
        (pod_object(labels={"nebula.inftyai.com/accelerator-type": ""}), None, "AcceleratorTypeMissing"),
        (pod_object(hostNetwork=True), None, "InvalidWorkload"),
        (pod_object(labels={"nebula.inftyai.com/nodepool": "none"}), None, "NodePoolNotFound"),
        (pod_object(labels={"nebula.inftyai.com/nodepool": ""}), None, "NodePoolNotNamed"),
        (pod_object(), {"kind": "NodePool"}, "InvalidNodePool"),
        (pod_object(), pool_object(strategy="Cheapest"), "InvalidNodePool"),
    ],
)
def test_every_problem_of_the_input_is_an_answer(pod: Any, pool: Any, reason: str) -> None:
    answer = asked(World(), pod, pool)
    assert answer["refused"]["reason"] == reason
    assert not answer["placed"]
    assert answer["candidates"] == []


def test_a_cluster_that_is_not_ours_is_named() -> None:
    answer = asked(World(), cluster="elsewhere")
    assert answer["refused"] == {
        "reason": "UnknownCluster",
        "message": "elsewhere is not a cluster of this installation",
    }
    assert asked(World(), cluster=CLUSTER)["placed"]


@pytest.mark.parametrize("kind", ["Deployment", "Job", "CronJob"])
def test_a_template_is_read_as_the_pod_it_makes(kind: str) -> None:
    template = {key: pod_object()[key] for key in ("metadata", "spec")}
    del template["metadata"]["name"]
    spec: dict[str, Any] = {"template": template}
    if kind == "CronJob":
        spec = {"jobTemplate": {"spec": spec}}
    pod = pod_from_manifest({"kind": kind, "metadata": {"name": "llm", "namespace": "team"}, "spec": spec})
    assert (pod.name, pod.namespace, pod.enabled) == ("llm", "team", True)


def test_what_holds_no_pod_is_refused() -> None:
    with pytest.raises(MalformedPodError, match="holds no Pod template"):
        pod_from_manifest({"kind": "Deployment", "spec": {}})


POOL = """
apiVersion: nebula.inftyai.com/v1alpha1
kind: NodePool
metadata: {name: gpus}
spec: {providers: [{name: runpod}], capacityTypes: [OnDemand], strategy: LowestPrice, maxPricePerHour: "100"}
"""
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: llm
  labels:
    nebula.inftyai.com/enabled: "true"
    nebula.inftyai.com/nodepool: gpus
    nebula.inftyai.com/accelerator-type: h100
spec:
  schedulingGates: [{name: nebula.inftyai.com/provider-selection}]
  containers: [{name: main, image: "vllm/vllm-openai:v1", resources: {limits: {nvidia.com/gpu: 1}}}]
"""


def files(folder: Path, pod: str = POD, pool: str = POOL) -> list[str]:
    (folder / "pod.yaml").write_text(pod)
    (folder / "pool.yaml").write_text(pool)
    return ["explain", "--pod", str(folder / "pod.yaml"), "--pool", str(folder / "pool.yaml")]


def test_the_command_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(files(tmp_path)) == 0
    text = capsys.readouterr().out
    assert "default/llm asks for H100:1" in text
    assert "chosen" in text
    assert "note: runpod: shipped prices; stock is not known" in text


def test_the_command_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    assert main([*files(tmp_path), "--output", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["candidates"][0]["provider"] == "runpod"
    assert answer["cluster"] is None


def test_a_pod_that_would_wait_is_exit_code_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(files(tmp_path, pool=POOL.replace("100", "0.01"))) == 1
    assert "price_above_maximum" in capsys.readouterr().out
    assert main(files(tmp_path, pod=POD.replace("h100", '""'))) == 1
    assert capsys.readouterr().out.startswith("refused: AcceleratorTypeMissing")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ('    nebula.inftyai.com/enabled: "true"\n', "label nebula.inftyai.com/enabled"),
        ("    nebula.inftyai.com/nodepool: gpus\n", "label nebula.inftyai.com/nodepool"),
        ("  schedulingGates: [{name: nebula.inftyai.com/provider-selection}]\n", "gate nebula.inftyai.com/"),
    ],
)
def test_what_would_keep_a_pod_from_being_seen_is_noted(
    line: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(files(tmp_path))
    assert "the Pod lacks" not in capsys.readouterr().out
    assert line in POD
    main(files(tmp_path, pod=POD.replace(line, "")))
    assert f"note: the Pod lacks the {word}" in capsys.readouterr().out.replace("opt-in ", "")


def test_a_price_above_the_whole_budget_is_told_from_a_budget_that_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(files(tmp_path, pool=POOL.replace("maxPricePerHour", "budgetPerHour").replace("100", "0.50")))
    assert "is above the whole budgetPerHour $0.50/h" in capsys.readouterr().out
    world = World(pool=pool_object("simulated", budgetPerHour="3"))
    world.create_pod()
    world.pump()
    detail = asked(world)["candidates"][0]["detail"]
    assert detail == "$2.00/h does not fit in what is left of budgetPerHour $3.00/h"


@pytest.mark.parametrize(
    ("pod", "word"),
    [("{", "not YAML"), ("[]", "holds no"), ("kind: NodePool", "holds no"), ("kind: Service", "holds no")],
)
def test_a_file_that_cannot_be_used_is_named(
    pod: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(files(tmp_path, pod=pod)) == 2
    error = capsys.readouterr().err
    assert "pod.yaml" in error
    assert word in error


def test_a_missing_file_and_wrong_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--pod", str(tmp_path / "none.yaml"), "--pool", str(tmp_path / "none.yaml")]) == 2
    assert capsys.readouterr().err == f"explain: {tmp_path / 'none.yaml'}: No such file or directory\n"
    with pytest.raises(SystemExit) as wrong:
        main(["dance"])
    assert wrong.value.code == 2


def test_both_objects_may_be_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(f"{POOL}---{POD}")
    pod, pool = command.read_pod(path), command.read_pool(path)
    assert command.answer_for(pod, pool, ManualClock(START))["placed"]


def test_the_pod_is_found_beside_objects_that_have_none(tmp_path: Path) -> None:
    """A Deployment's file often begins with its ConfigMap; ``kubectl get -o yaml`` of several answers a List."""
    path = tmp_path / "all.yaml"
    path.write_text(f"kind: ConfigMap\nmetadata: {{name: settings}}\n---{POOL}---{POD}")
    assert command.read_pod(path)["metadata"]["name"] == "llm"
    path.write_text(
        "kind: List\nitems: [{kind: SealedSecret, spec: {template: {}}}, {kind: Pod, metadata: {name: one}}]"
    )
    assert command.read_pod(path)["metadata"]["name"] == "one"


def test_a_line_that_is_no_yaml_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(files(tmp_path, pod="kind: Pod\nspec: {\n")) == 2
    assert "(line 3)" in capsys.readouterr().err
