"""Processes of the local stack live and die together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from local.deployment import ROOT

pytestmark = pytest.mark.network

PROGRAM = """
    import sys, time
    from pathlib import Path
    from local.supervisor import ChildFailedError, Supervisor

    directory = Path(sys.argv[1])

    def live():
        import os
        (directory / "child").write_text(str(os.getpid()))
        time.sleep(60)

    def fail():
        sys.exit(3)

    children = {"live": live, "fail": fail} if sys.argv[2] == "fail" else {"live": live}
    supervisor = Supervisor(children)
    supervisor.stop_on_signals()
    supervisor.start()
    try:
        supervisor.wait()
    except ChildFailedError as error:
        print(error)
        sys.exit(1)
    supervisor.stop()
"""


def _start(directory: Path, mode: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(directory), mode]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, text=True)


def _child(directory: Path) -> int:
    until = time.monotonic() + 20
    while not (text := _read(directory / "child")):
        assert time.monotonic() < until
        time.sleep(0.02)
    return int(text)


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _ended(pid: int) -> bool:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if "State:\tZ" in _read(Path(f"/proc/{pid}/status")):
            return True
        time.sleep(0.02)
    return False


def test_a_polite_end_ends_the_children(tmp_path: Path) -> None:
    process = _start(tmp_path, "live")
    child = _child(tmp_path)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert _ended(child)


def test_children_end_when_their_parent_is_killed_outright(tmp_path: Path) -> None:
    process = _start(tmp_path, "live")
    child = _child(tmp_path)
    process.kill()
    process.wait(20)
    assert _ended(child)


def test_a_child_that_ends_by_itself_ends_the_others_and_is_named(tmp_path: Path) -> None:
    process = _start(tmp_path, "fail")
    said, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert said.strip() == "fail ended with status 3"
