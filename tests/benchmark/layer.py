"""The size of the dependencies layer: as ``sam build`` left it, else installed for the target into a directory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from local.deployment import ROOT

BUILT = ROOT / ".aws-sam" / "build" / "DependenciesLayer"
REQUIREMENTS = ROOT / "layers" / "dependencies" / "requirements.txt"
_TARGET = (
    *("--platform", "manylinux2014_aarch64"),
    *("--implementation", "cp", "--python-version", "3.13"),
    *("--only-binary", ":all:"),
)
_SECONDS = 300


def run() -> dict[str, Any]:
    """Size, number of files and the largest packages. RuntimeError when pip cannot install it here."""
    if BUILT.is_dir():
        return {"source": f"{BUILT.relative_to(ROOT)}, as sam build left it", **measure(BUILT)}
    with tempfile.TemporaryDirectory(prefix="nebula-bench-layer-") as directory:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--no-deps", "--no-compile"]
        done = subprocess.run(
            [*command, *_TARGET, "--target", directory, "-r", str(REQUIREMENTS)],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"pip cannot install the layer: {done.stderr.strip()[-300:]}")
        return {"source": "pip install for Python 3.13 on arm64, without .pyc", **measure(Path(directory))}


def measure(directory: Path) -> dict[str, Any]:
    """Megabytes (10^6 bytes) of a directory's files."""
    sizes: Counter[str] = Counter()
    files = 0
    for path in directory.rglob("*"):
        if path.is_file() and not path.is_symlink():
            files += 1
            inside = path.relative_to(directory).parts
            sizes[inside[1] if inside[0] == "python" and len(inside) > 1 else inside[0]] += path.stat().st_size
    largest = {name: round(size / 1e6, 1) for name, size in sizes.most_common(6)}
    return {"megabytes": round(sum(sizes.values()) / 1e6, 1), "files": files, "largest": largest}
