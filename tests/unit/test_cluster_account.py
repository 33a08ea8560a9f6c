"""The identity of the functions in a cluster that is not EKS: it may do what the group may, by a token that stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from nebula.clock import ManualClock
from nebula.kubernetes.api import ForbiddenError
from nebula.providers.simulated import SimulatedProvider

from local.kubernetes.access import User
from local.kubernetes.adapter import client
from local.kubernetes.resources import BY_KIND, NODE_POOLS
from local.kubernetes.server import Emulator
from tests.support.kustomize import manifests
from tests.support.world import START, World, pool_object, running

CLUSTER = Path(__file__).parents[2] / "cluster"
ROLES: list[dict[str, Any]] = list(yaml.safe_load_all((CLUSTER / "rbac/control-plane.yaml").read_text()))
ACCOUNT = "system:serviceaccount:nebula-system:nebula-control-plane"


def _install(emulator: Emulator) -> None:
    for document in [*manifests(CLUSTER / "namespace"), *ROLES, *manifests(CLUSTER / "account")]:
        namespace = document["metadata"].get("namespace", "")
        emulator.create(BY_KIND[document["apiVersion"], document["kind"]], namespace, document)


def test_the_functions_work_with_the_account_and_only_with_it() -> None:
    clock = ManualClock(START)
    world = World(SimulatedProvider(clock, name="runpod"), clock=clock)
    world.emulator = Emulator(clock=world.clock, rbac=True, tokens={"t": User(ACCOUNT), "other": User("someone")})
    _install(world.emulator)
    world.api = client(world.emulator, "test", token="t")
    world.clusters = type(world.clusters)(world.api)
    world.emulator.create(NODE_POOLS, "", pool_object("runpod"))
    world.create_pod()
    world.pump()
    world.minute()
    assert running(world.pod())
    with pytest.raises(ForbiddenError):
        client(world.emulator, "test", token="other").get_pod("default", "train")


def test_each_binding_of_the_group_has_one_of_the_account() -> None:
    groups = {d["roleRef"]["name"] for d in ROLES if d["kind"].endswith("Binding")}
    accounts = {d["roleRef"]["name"] for d in manifests(CLUSTER / "account") if d["kind"].endswith("Binding")}
    assert groups == accounts == {"nebula-control-plane", "nebula-leases"}


def test_the_token_is_the_accounts() -> None:
    (secret,) = [d for d in manifests(CLUSTER / "account") if d["kind"] == "Secret"]
    assert secret["type"] == "kubernetes.io/service-account-token"
    assert secret["metadata"]["annotations"] == {"kubernetes.io/service-account.name": "nebula-control-plane"}
