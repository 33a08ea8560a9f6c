"""What ``kubectl get`` prints of the local cluster: the columns of a real one."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.kubernetes.durations import human
from local.kubernetes.resources import SECRETS
from tests.support.world import World

AS_TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
CRD = Path(__file__).parents[2] / "cluster/crds/nodepools.yaml"
PODS = "/api/v1/namespaces/default/pods"
NODE_POOLS = "/apis/nebula.inftyai.com/v1alpha1/nodepools"


def _get(world: World, path: str) -> dict[str, Any]:
    answer = world.emulator.handle("GET", path, {}, AS_TABLE)
    assert answer.status == 200
    assert isinstance(answer.body, bytes)
    found: dict[str, Any] = json.loads(answer.body)
    assert (found["kind"], found["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    return found


def _rows(world: World, path: str) -> list[dict[str, Any]]:
    """Each row by the names of its columns."""
    found = _get(world, path)
    names = [column["name"] for column in found["columnDefinitions"]]
    return [dict(zip(names, row["cells"], strict=True)) for row in found["rows"]]


def _status(world: World) -> str:
    (row,) = _rows(world, PODS)
    return str(row["Status"])


def test_a_pod_is_gated_runs_and_ends() -> None:
    world = World()
    world.create_pod(restartPolicy="Never")
    assert _status(world) == "SchedulingGated"
    world.pump()
    world.minute()
    world.clock.advance(timedelta(minutes=2))
    (row,) = _rows(world, PODS)
    assert {**row, "Node": "n"} == {
        "Name": "train",
        "Ready": "1/1",
        "Status": "Running",
        "Restarts": "0",
        "Age": "3m",
        "IP": "<none>",
        "Node": "n",
    }
    world.simulated.console.exit(world.billed()[0], 3)
    world.run(2)
    assert _status(world) == "Error"


def test_a_deletion_is_shown_above_all() -> None:
    world = World()
    world.create_pod()
    world.pump()
    world.minute()
    world.delete_pod()
    assert _status(world) == "Terminating"


def test_node_pools_have_the_columns_of_their_definition() -> None:
    definition = yaml.safe_load(CRD.read_text())
    wanted = [
        (column["name"], column.get("priority", 0))
        for column in definition["spec"]["versions"][0]["additionalPrinterColumns"]
    ]
    shown = [(column["name"], column["priority"]) for column in _get(World(), NODE_POOLS)["columnDefinitions"]]
    assert shown == [("Name", 0), *wanted]


def test_nodes_events_and_other_kinds() -> None:
    world = World()
    world.create_pod()
    world.pump()
    world.minute()
    world.emulator.create(SECRETS, "default", {"metadata": {"name": "s"}})
    (node,) = _rows(world, "/api/v1/nodes")
    assert (node["Name"], node["Status"], node["Roles"]) == ("nebula-simulated", "Ready", "<none>")
    world.emulator.controllers.lapse("nebula-simulated")
    assert _rows(world, "/api/v1/nodes")[0]["Status"] == "NotReady"
    events = _rows(world, "/api/v1/namespaces/default/events")
    assert ("pod/train", "Released") in [(event["Object"], event["Reason"]) for event in events]
    assert _rows(world, "/api/v1/namespaces/default/secrets/s") == [{"Name": "s", "Age": "0s"}]


def test_a_watch_tells_rows_and_one_without_the_wish_tells_objects() -> None:
    world = World()
    world.create_pod()
    for headers, kind in ((AS_TABLE, "Table"), ({}, "Pod")):
        answer = world.emulator.handle("GET", PODS, {"watch": "true", "timeoutSeconds": "1"}, headers)
        assert not isinstance(answer.body, bytes)
        (line,) = islice(answer.body, 1)
        assert json.loads(line)["object"]["kind"] == kind


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (185, "3m5s"),
        (660, "11m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (5 * 3600 + 720, "5h12m"),
        (30 * 3600, "30h"),
        (76 * 3600, "3d4h"),
        (28 * 86400, "28d"),
    ],
)
def test_ages_are_written_as_kubectl_does(seconds: int, text: str) -> None:
    assert human(timedelta(seconds=seconds)) == text
