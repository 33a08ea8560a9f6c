"""The CRD: its structure, its defaults against the model's, and the cases that both must judge alike.

The rules in CEL run only in a real API server (``tests/contract``, marker ``apiserver``); here the schema is
checked as far as plain OpenAPI goes, and the model on every case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from nebula.domain.nodepool import NodePool
from nebula.kubernetes.node_pool import InvalidNodePoolError, node_pool_from_object

from tests.support.node_pools import ADDITIONS, OPERATOR, REFUSED

ROOT = Path(__file__).parents[2]
DEFINITION: dict[str, Any] = yaml.safe_load((ROOT / "cluster/crds/nodepools.yaml").read_text())
VERSION = DEFINITION["spec"]["versions"][0]
SCHEMA = VERSION["schema"]["openAPIV3Schema"]
SPEC = SCHEMA["properties"]["spec"]
KINDS = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}


def problems(schema: dict[str, Any], value: Any, where: str = "spec") -> Iterator[str]:
    """What plain OpenAPI (no CEL) holds against a value."""
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, int | str) or (isinstance(value, str) and not re.search(schema["pattern"], value)):
            yield where
        return
    if not isinstance(value, KINDS[schema["type"]]):
        yield where
        return
    if "enum" in schema and value not in schema["enum"]:
        yield where
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        yield where
    if isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield where
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield where
        for number, item in enumerate(value):
            yield from problems(schema["items"], item, f"{where}[{number}]")
    if isinstance(value, dict):
        yield from (f"{where}.{name}" for name in schema.get("required", ()) if name not in value)
        known = schema.get("properties", {})
        for name, item in value.items():
            yield from problems(known.get(name) or schema["additionalProperties"], item, f"{where}.{name}")


def read(spec: dict[str, Any]) -> NodePool:
    return node_pool_from_object({"metadata": {"name": "pool"}, "spec": spec})


@pytest.mark.parametrize("name", [*OPERATOR, *ADDITIONS])
def test_valid_specs_pass_the_schema_and_the_model(name: str) -> None:
    spec = {**OPERATOR, **ADDITIONS}[name]
    assert list(problems(SPEC, spec)) == []
    assert read(spec).name == "pool"


@pytest.mark.parametrize("name", REFUSED)
def test_bad_specs_are_refused_by_the_model_with_the_field_named(name: str) -> None:
    spec, field = REFUSED[name]
    with pytest.raises(InvalidNodePoolError) as refused:
        read(spec)
    assert refused.value.field == field


#: Refused by a rule in CEL, or by a list key, and therefore only by a real API server.
ONLY_A_SERVER = {
    "wrong cloud",
    "weightless",
    "free",
    "negative",
    "wordy time",
    "no time to start",
    "targets while open",
    "empty allowlist",
    "two in one target",
    "ports without mode",
    "mode without ports",
    "port twice",
}


@pytest.mark.parametrize("name", sorted(set(REFUSED) - ONLY_A_SERVER))
def test_plain_limits_are_in_the_schema(name: str) -> None:
    assert list(problems(SPEC, REFUSED[name][0]))


def test_every_rule_in_cel_says_what_is_wrong() -> None:
    rules = list(rules_of(SPEC))
    assert len(rules) == 13
    assert all(rule["message"] and rule["rule"] for rule in rules)


def rules_of(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from schema.get("x-kubernetes-validations", ())
    for child in [*schema.get("properties", {}).values(), schema.get("items")]:
        if child:
            yield from rules_of(child)


def test_the_defaults_are_the_model_s() -> None:
    defaulted = {"providers": [{"name": "a"}], **defaults(SPEC), "failover": {}, "ingress": {}}
    for part in ("failover", "ingress"):
        defaulted[part] = defaults(SPEC["properties"][part])
    assert read(defaulted) == read({"providers": [{"name": "a"}]})
    assert defaults(SPEC["properties"]["ingress"]["properties"]["ports"]["items"]) == {"protocol": "HTTP"}


def defaults(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: child["default"] for name, child in schema["properties"].items() if "default" in child}


def test_the_names_are_the_operator_s() -> None:
    spec = DEFINITION["spec"]
    assert (spec["group"], VERSION["name"], spec["scope"]) == ("nebula.inftyai.com", "v1alpha1", "Cluster")
    assert spec["names"]["shortNames"] == ["np"]
    assert VERSION["subresources"] == {"status": {}}
    columns = [column["name"] for column in VERSION["additionalPrinterColumns"]]
    assert columns == ["Status", "Strategy", "Providers", "Committed", "Budget", "Reason", "Age"]


def test_every_field_of_the_model_is_in_the_schema_and_described() -> None:
    for schema, where in ((SPEC, "spec"), *((SPEC["properties"][p], p) for p in ("failover", "ingress"))):
        for name, child in schema["properties"].items():
            assert "description" in child or "enum" in child or name == "ports", f"{where}.{name}"
    everything = {**OPERATOR["all fields"], **ADDITIONS["lowest price"], **ADDITIONS["flags"], **ADDITIONS["ports"]}
    assert set(everything) | {"failover"} == set(SPEC["properties"])


def test_the_file_has_no_anchors() -> None:
    """A strict decoder refuses a mapping that a YAML merge key fills twice."""
    text = (ROOT / "cluster/crds/nodepools.yaml").read_text()
    assert "<<:" not in text
    assert not re.search(r": [&*]\w", text)
