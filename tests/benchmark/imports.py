"""How long a function's module and its AWS clients take to import, in fresh interpreters."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from local.deployment import ROOT

FUNCTIONS = ("placement", "provisioning", "status_polling", "credential_retirement")
_SECONDS = 60
_CODE = """
import time
began, used = time.perf_counter(), time.process_time()
import runpy, sys
runpy.run_path(sys.argv[1])
from nebula.aws import AwsClients
clients = AwsClients()
clients.dynamodb, clients.events, clients.sqs, clients.ssm
import json
print(json.dumps([time.perf_counter() - began, time.process_time() - used]))
"""
_PLACES = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


def run(times: int = 9) -> dict[str, Any]:
    """Per function: the median of several interpreters that find .pyc files, and one that finds none.

    The .pyc files of everything, packages included, are kept in a directory of their own: what a checkout happens
    to hold does not matter. The functions take turns, so that a minute in which the machine is slow is shared by all.
    """
    with tempfile.TemporaryDirectory(prefix="nebula-bench-pyc-") as directory:
        cache = Path(directory)
        cold = {name: _without_pyc(name, cache) for name in FUNCTIONS}
        for name in FUNCTIONS:
            _once(name, cache)
        turns = [{name: _once(name, cache) for name in FUNCTIONS} for _ in range(times)]
    return {
        "functions": {name: _medians([turn[name] for turn in turns], cold[name]) for name in FUNCTIONS},
        "interpreters": times,
    }


def _without_pyc(name: str, cache: Path) -> float:
    shutil.rmtree(cache, ignore_errors=True)
    _, cpu = _once(name, cache)
    return cpu


def _medians(warm: Sequence[tuple[float, float]], cold: float) -> dict[str, float]:
    return {
        "cpu_s": round(statistics.median(cpu for _, cpu in warm), 3),
        "wall_s": round(statistics.median(wall for wall, _ in warm), 3),
        "cold_cpu_s": round(cold, 3),
    }


def _once(name: str, cache: Path) -> tuple[float, float]:
    """Wall and processor seconds of one interpreter."""
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": str(ROOT / "layers/provider/python"),
        "PYTHONPYCACHEPREFIX": str(cache),
        **_PLACES,
    }
    done = subprocess.run(
        [sys.executable, "-c", _CODE, str(ROOT / "functions" / name / "app.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{name} cannot be imported: {done.stderr.strip().splitlines()[-1:]}")
    wall, cpu = json.loads(done.stdout)
    return float(wall), float(cpu)
