"""What the pages tell one to type exists: make's targets, the operator's command, AWS' operations and their options."""

from __future__ import annotations

import argparse
import re
import subprocess
from importlib import import_module
from pathlib import Path

import botocore.session
import pytest
from botocore import xform_name

from cli.__main__ import COMMANDS
from tests.unit.test_pages import PAGES, ROOT

_BLOCK = re.compile(r"^ *```(?:bash|sh)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
#: The AWS CLI's own: no operation of the service is called so.
_OWN_OF_THE_CLI = {("logs", "tail")}
_OPTIONS_OF_THE_CLI = {"query", "output", "region", "profile"}


def _blocks(page: Path) -> list[str]:
    return [block.replace("\\\n", " ") for block in _BLOCK.findall(page.read_text())]


TYPED = sorted({line for page in PAGES for text in _blocks(page) for line in text.splitlines()})
WORDS = [*TYPED, *(code for page in PAGES for code in _INLINE.findall(page.read_text()))]
_CALLS = {call for line in TYPED for call in re.findall(r"\baws ([a-z]\w*) ([a-z][\w-]*)", line)}
AWS = sorted(_CALLS - _OWN_OF_THE_CLI)
SCRIPTED = [page for page in PAGES if _blocks(page)]


@pytest.mark.parametrize("page", SCRIPTED, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_are_a_shell_s(page: Path) -> None:
    for block in _blocks(page):
        done = subprocess.run(["bash", "-n"], input=block, text=True, capture_output=True, check=False)
        assert done.stderr == "", block


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    typed = {word for code in WORDS for word in re.findall(r"^make ([a-z-]+)", code)}
    assert {"demo", "stack", "invoke", "explain", "credentials", "gating"} <= typed
    assert typed - {"test-perf"} <= targets, "test-perf is the Nebula operator's"


def test_the_operator_s_commands_and_their_options_exist() -> None:
    found = [words for code in WORDS for words in re.findall(r"\./nebula ([a-z]+)([^\n|]*)", code)]
    assert {name for name, _ in found} == set(COMMANDS) - {"gating"}
    for name, rest in found:
        parser = argparse.ArgumentParser()
        import_module(COMMANDS[name][0]).add_arguments(parser)
        options = set(re.findall(r"(?<!\S)(--[a-z-]+)", rest.partition("#")[0]))
        assert options <= set(parser._option_string_actions), (name, rest)


@pytest.mark.parametrize(("service", "operation"), AWS)
def test_operations_of_aws_and_their_options_exist(service: str, operation: str) -> None:
    model = botocore.session.get_session().get_service_model(service)
    names = {xform_name(name, "-"): name for name in model.operation_names}
    assert operation in names
    shape = model.operation_model(names[operation]).input_shape
    known = {xform_name(member, "-") for member in shape.members} if shape is not None else set()
    for line in TYPED:
        for rest in re.findall(rf"\baws {service} {operation}((?: [^|;]*?)?)(?=\$\(aws|[|;]|$)", line):
            options = set(re.findall(r"(?<!\S)--([a-z-]+)", re.sub(r"'[^']*'|\"[^\"]*\"", "", rest)))
            assert options <= known | _OPTIONS_OF_THE_CLI, line
