"""Alarms and the dashboard: few, documented, and watching figures that the code sends."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.cloudformation import of_type, properties, written

ROOT = Path(__file__).resolve().parents[2]
ALARMS = of_type("AWS::CloudWatch::Alarm")
FIGURES = {name: alarm for name, alarm in ALARMS.items() if "MetricName" in alarm}
NAMESPACE = {"Fn::Sub": "Nebula/${AWS::StackName}"}


def _counts() -> dict[str, set[str]]:
    """Keywords of each ``count("Name", ...)`` in the code, by the metric's name."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "layers/provider/python/nebula").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "count"):
                continue
            if node.args and isinstance(node.args[0], ast.Constant):
                found.setdefault(str(node.args[0].value), set()).update(str(k.arg) for k in node.keywords)
    return found


def _anchors() -> set[str]:
    headings = re.findall(r"^#+ (.+)$", (ROOT / "docs/operations.md").read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_there_are_at_most_ten() -> None:
    assert 1 <= len(ALARMS) <= 10


@pytest.mark.parametrize("name", sorted(ALARMS))
def test_each_alarm_says_where_to_look_and_notifies(name: str) -> None:
    alarm = ALARMS[name]
    found = re.search(r"See docs/operations\.md#([a-z-]+)\.$", alarm["AlarmDescription"])
    assert found is not None
    assert found[1] in _anchors()
    assert alarm["AlarmActions"]["Fn::If"][:2] == ["Notifies", [{"Ref": "AlarmTopicArn"}]]


@pytest.mark.parametrize("name", sorted(ALARMS))
def test_silence_alarms_only_where_silence_is_the_fault(name: str) -> None:
    expected = "breaching" if name == "StatusLoopAlarm" else "notBreaching"
    assert ALARMS[name]["TreatMissingData"] == expected


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_each_figure_is_sent_by_the_code_without_dimensions_of_its_own(name: str) -> None:
    # Any keyword but the unit would be a dimension that the alarm lacks.
    keywords = _counts().get(FIGURES[name]["MetricName"])
    assert keywords is not None
    assert keywords <= {"unit"}
    assert [d["Name"] for d in FIGURES[name]["Dimensions"]] == ["function"]


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_each_figure_is_that_of_this_stack(name: str) -> None:
    assert FIGURES[name]["Namespace"] == NAMESPACE
    variables = properties("PlacementFunction")["Environment"]["Variables"]
    assert variables["NEBULA_METRICS_NAMESPACE"] == NAMESPACE


def test_the_dashboard_is_optional_and_valid() -> None:
    assert written()["Parameters"]["Dashboard"]["Default"] == "false"
    body = properties("OperationsDashboard")["DashboardBody"]["Fn::Sub"]
    assert set(re.findall(r"\$\{(\w+)\.Arn\}", body)) == set(ALARMS)
    widgets: list[dict[str, Any]] = json.loads(re.sub(r"\$\{[^}]+\}", "x", body))["widgets"]
    assert {widget["type"] for widget in widgets} == {"alarm", "metric"}
    assert all(widget["x"] + widget["width"] <= 24 for widget in widgets)
