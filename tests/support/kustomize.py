"""As much of ``kubectl kustomize`` as the folders under ``cluster/`` use: resources, files and folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def manifests(folder: Path) -> list[dict[str, Any]]:
    """Every object that a kustomization lists, generated ones and its changes aside."""
    found: list[dict[str, Any]] = []
    for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
        path = (folder / name).resolve()
        found += manifests(path) if path.is_dir() else yaml.safe_load_all(path.read_text())
    return found
