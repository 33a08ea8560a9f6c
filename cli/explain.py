"""``nebula explain``: the candidate table for a Pod under a NodePool. Local, needs no account.

Prices are those shipped with the product, so stock, blocks and what is spent already are unknown here;
the ``Explain`` event to the placement function answers with all of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import yaml
from nebula.clock import Clock, SystemClock
from nebula.kubernetes.manifest import pod_template
from nebula.stores.memory_blocks import MemoryBlockStore
from nebula.stores.memory_claims import MemoryClaimStore
from nebula.workflows.explain import Scene, explain

from cli.offline import OfflineProviders
from cli.table import render

MAX_FILE_BYTES = 1_000_000


class FileError(Exception):
    """A file cannot be used; the message names it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--pod", required=True, type=Path, help="YAML or JSON with a Pod, Deployment, Job …; its first")
    parser.add_argument("--pool", required=True, type=Path, help="YAML or JSON with the NodePool; may be the same file")
    parser.add_argument("--output", choices=("table", "json"), default="table", help="table (the default) or json")


def run(arguments: argparse.Namespace) -> int:
    """Print the answer. 0: a candidate would be chosen; 1: the Pod would wait; 2: a file cannot be used."""
    try:
        pod, pool = read_pod(arguments.pod), read_pool(arguments.pool)
    except FileError as error:
        print(f"explain: {error}", file=sys.stderr)
        return 2
    answer = answer_for(pod, pool, SystemClock())
    print(json.dumps(answer, indent=2) if arguments.output == "json" else render(answer))
    return 0 if answer["placed"] else 1


def answer_for(pod: dict[str, Any], pool: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """The answer on shipped prices at the clock's time."""
    scene = Scene(OfflineProviders(clock), MemoryBlockStore(), MemoryClaimStore(), clock.now())
    return explain(scene, pod, pool)


def read_pod(path: Path) -> dict[str, Any]:
    """The first Pod, or object with a Pod template, of a file. Raises FileError."""
    for found in _objects(path):
        if found.get("kind") != "NodePool" and pod_template(found) is not None:
            return found
    raise FileError(f"{path}: holds no Pod, and no object with a Pod template")


def read_pool(path: Path) -> dict[str, Any]:
    """The first NodePool of a file. Raises FileError."""
    for found in _objects(path):
        if found.get("kind") == "NodePool":
            return found
    raise FileError(f"{path}: holds no NodePool")


def _objects(path: Path) -> list[dict[str, Any]]:
    """Every object of a file, those of a ``List`` one by one."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise FileError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileError(f"{path}: not UTF-8 text") from None
    except yaml.YAMLError as error:
        raise FileError(f"{path}: not YAML or JSON: {_problem(error)}") from None
    listed = [item for document in documents for item in _items(document)]
    return [item for item in listed if isinstance(item, dict)]


def _items(document: Any) -> list[Any]:
    if isinstance(document, dict) and document.get("kind") == "List" and isinstance(document.get("items"), list):
        return list(document["items"])
    return [document]


def _problem(error: yaml.YAMLError) -> str:
    """The parser's words, with the line where it has one."""
    mark = getattr(error, "problem_mark", None)
    return f"{getattr(error, 'problem', error)}{'' if mark is None else f' (line {mark.line + 1})'}"
