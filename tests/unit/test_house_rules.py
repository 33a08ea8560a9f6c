"""Rules that hold for the whole tree: size of files, who may import whom, what is not done at import."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers/provider/python/nebula"
MAX_LINES = 300

#: Package -> the packages and modules of ours that it may import.
DOMAIN = {"domain"}
PURE = DOMAIN | {"placement", "lifecycle", "credentials"}
ALLOWED: dict[str, set[str]] = {
    "domain": DOMAIN,
    "events": DOMAIN | {"events", "observability", "clock"},
    "stores": DOMAIN | {"stores", "clock"},
    "catalog": DOMAIN | {"catalog", "clock"},
    "placement": PURE | {"providers.base", "providers.errors", "stores.blocks"},
    # Names of conditions and reasons are constants of the Kubernetes vocabulary, not a way to a cluster.
    "lifecycle": PURE | {"providers.base", "providers.errors", "kubernetes.names"},
    "credentials": PURE | {"settings"},
}
#: Modules that decide: no I/O of any kind.
PURE_PACKAGES = ("domain", "placement", "lifecycle", "credentials")
IMPURE = {"boto3", "botocore", "requests", "urllib3", "os", "socket", "time", "random", "subprocess"}


class _MethodCall(ast.Call):
    """A call of an attribute, for the type checker."""

    func: ast.Attribute


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.split() or [str(p.relative_to(ROOT)) for p in PACKAGE.rglob("*.py")]
    return [ROOT / name for name in names if (ROOT / name).exists()]


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _is_method_call(node: ast.AST) -> TypeGuard[_MethodCall]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


def test_no_python_file_is_over_300_lines() -> None:
    long = {str(path.relative_to(ROOT)): path.read_text().count("\n") for path in _tracked()}
    assert {name: lines for name, lines in long.items() if lines > MAX_LINES} == {}


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_imports_only_what_it_may(package: str) -> None:
    allowed = {f"nebula.{name}" for name in ALLOWED[package]}
    for path in (PACKAGE / package).rglob("*.py"):
        ours = {name for name in _imports(path) if name.startswith("nebula.")}
        wrong = {name for name in ours if not any(name == a or name.startswith(f"{a}.") for a in allowed)}
        assert not wrong, (path.name, wrong)


@pytest.mark.parametrize("package", PURE_PACKAGES)
def test_decisions_do_no_io(package: str) -> None:
    for path in (PACKAGE / package).rglob("*.py"):
        touched = {name.partition(".")[0] for name in _imports(path)} & IMPURE
        assert not touched, (path.name, touched)


def test_only_functions_local_cli_and_tests_import_the_wiring() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert "nebula.wiring" not in set(_imports(path)), path.name


def test_only_the_wiring_and_the_settings_know_the_environment() -> None:
    for path in PACKAGE.rglob("*.py"):
        reads = "os.environ" in path.read_text() or "getenv" in path.read_text()
        assert not reads or path.name == "wiring.py", path.name


def test_importing_the_product_reads_no_environment_and_opens_no_socket() -> None:
    """Module level holds definitions only: no call of ``environ``, ``client`` or ``Session`` outside a function."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr):
                called = {n.func.attr for n in ast.walk(node) if _is_method_call(n)}
                assert not called & {"get", "getenv", "client", "Session", "resource"}, (path.name, node.lineno)
