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
    parser.add_argument("--pod", required=True, type=Path, help="YAML or JSON: a Pod, Deployment, Job, CronJob …")
    parser.add_argument("--pool", required=True, type=Path, help="YAML or JSON of the NodePool")
    parser.add_argument("--output", choices=("table", "json"), default="table")


def run(arguments: argparse.Namespace) -> int:
    """Print the answer. 0: a candidate would be chosen; 1: the Pod would wait; 2: a file cannot be read."""
    try:
        pod, pool = read_object(arguments.pod, avoid="NodePool"), read_object(arguments.pool, wanted="NodePool")
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


def read_object(path: Path, *, wanted: str = "", avoid: str = "") -> dict[str, Any]:
    """The first object of a file that is of the kind ``wanted`` (or not of the kind ``avoid``). Raises FileError."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise FileError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileError(f"{path}: not UTF-8 text") from None
    except yaml.YAMLError as error:
        raise FileError(f"{path}: not YAML or JSON: {getattr(error, 'problem', error)}") from None
    objects = [document for document in documents if isinstance(document, dict)]
    for found in objects:
        if (not wanted or found.get("kind") == wanted) and found.get("kind") != (avoid or None):
            return found
    raise FileError(f"{path}: holds no {wanted or 'object with a Pod'}")
