"""docs/operations.md: every alarm is explained to its end, and its commands name what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli.__main__ import COMMANDS
from tests.support.cloudformation import of_type, template, written

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ *```bash\n(.*?)^ *```", PAGE, flags=re.MULTILINE | re.DOTALL)
COMMAND_TEXT = "\n".join(BLOCKS)
ASPECTS = ("Means", "Costs", "Look", "End it", "Over")
SOURCES = "\n".join(path.read_text() for path in (ROOT / "layers/provider/python/nebula").rglob("*.py"))


def _anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


SECTIONS = {
    _anchor(heading): text
    for heading, text in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
}


@pytest.mark.parametrize("name", sorted(of_type("AWS::CloudWatch::Alarm")))
def test_each_alarm_has_a_section_that_says_everything(name: str) -> None:
    description = of_type("AWS::CloudWatch::Alarm")[name]["AlarmDescription"]
    section = SECTIONS[description.rsplit("#", 1)[1].rstrip(".")]
    assert re.findall(r"^\*\*(.+?)\.\*\*", section, re.MULTILINE) == list(ASPECTS)


def test_each_link_within_the_page_leads_somewhere() -> None:
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= set(SECTIONS)


def test_the_commands_name_resources_and_outputs_of_the_template() -> None:
    resources = template()["Resources"]
    named = set(re.findall(r'"\$\(of (\w+)\)"', COMMAND_TEXT))
    queues = {f"{queue}DeadLetters" for queue in re.findall(r"for queue in ([\w ]+);", COMMAND_TEXT)[0].split()}
    assert named | queues <= set(resources)
    assert queues == {name for name in of_type("AWS::SQS::Queue") if name.endswith("DeadLetters")}
    assert set(re.findall(r"\$\(out (\w+)\)", COMMAND_TEXT)) <= set(written()["Outputs"])


def test_the_commands_name_indexes_and_functions_that_there_are() -> None:
    indexes = {
        index["IndexName"] for index in template()["Resources"]["ClaimsTable"]["Properties"]["GlobalSecondaryIndexes"]
    }
    assert set(re.findall(r"--index-name (\w+)", COMMAND_TEXT)) <= indexes
    groups = {
        json.dumps(group["LogGroupName"]).rsplit("/", 1)[1].rstrip('"}')
        for group in of_type("AWS::Logs::LogGroup").values()
    }
    assert set(re.findall(r"\blogs (\w+) '", COMMAND_TEXT)) <= groups
    assert set(re.findall(r"\./nebula (\w+)", PAGE)) <= set(COMMANDS)


def test_the_log_lines_that_it_looks_for_are_written_somewhere() -> None:
    wanted = set(re.findall(r'\$\.message = "([^"]+)"', COMMAND_TEXT))
    assert wanted
    assert [line for line in sorted(wanted) if f'"{line}"' not in SOURCES] == []
