"""A Pod that can never be released does not buy an instance each minute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from nebula.kubernetes.api import ForbiddenError, Object
from nebula.providers.simulated import Call

from tests.support.world import World


def test_a_refused_release_backs_off(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    real = world.api.patch_pod

    def refused(namespace: str, name: str, patch: Mapping[str, Any]) -> Object:
        if "spec" in patch:
            raise ForbiddenError("an admission webhook denied it")
        return real(namespace, name, patch)

    monkeypatch.setattr(world.api, "patch_pod", refused)
    world.create_pod()
    world.pump()
    world.run(60)
    assert 2 <= world.simulated.script.counts[Call.PROVISION] <= 8
    assert world.billed() == []
    assert "ReleaseRefused" in {world.claim().reason} or "refused" in world.claim().message
