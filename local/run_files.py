"""The files in which servers and worker say where they are: one directory per run."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from local.deployment import ROOT, Deployment, Endpoints

DEFAULT_DIRECTORY = ROOT / ".local" / "stack"

ModelT = TypeVar("ModelT", bound=BaseModel)


class ServersFile(BaseModel):
    """Written when every server listens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pid: int
    endpoints: Endpoints


class WorkerFile(BaseModel):
    """Written when the stack is deployed and every function is polled."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pid: int
    lambda_url: str
    deployment: Deployment


_NAMES: dict[type[BaseModel], str] = {ServersFile: "servers.json", WorkerFile: "worker.json"}


def write(directory: Path, content: BaseModel) -> None:
    """Write whole or not at all, readable by the owner only: it holds the run's tokens."""
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / _NAMES[type(content)]
    draft = target.with_suffix(f".{os.getpid()}.tmp")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(content.model_dump_json(indent=1))
    draft.replace(target)


def read(directory: Path, kind: type[ModelT]) -> ModelT | None:
    """What was written there, or None."""
    try:
        text = (directory / _NAMES[kind]).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return kind.model_validate_json(text)


def remove(directory: Path, kind: type[BaseModel]) -> None:
    """Forget it; absent is fine."""
    (directory / _NAMES[kind]).unlink(missing_ok=True)


@contextmanager
def only_one(directory: Path) -> Iterator[bool]:
    """Hold a directory for this process, until it ends in whatever way; False when another process holds it."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with directory.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def wait_for(directory: Path, kind: type[ModelT], *, alive: Callable[[], bool], seconds: float) -> ModelT:
    """Wait until a file is there; ``TimeoutError``, or ``ChildProcessError`` when its writer died first."""
    until = time.monotonic() + seconds
    while (found := read(directory, kind)) is None:
        if not alive():
            raise ChildProcessError(f"it ended before it wrote {_NAMES[kind]}")
        if time.monotonic() > until:
            raise TimeoutError(f"no {_NAMES[kind]} within {seconds:g} s")
        time.sleep(0.02)
    return found
