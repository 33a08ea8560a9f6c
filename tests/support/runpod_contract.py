"""RunPod's OpenAPI document as a judge of requests.

The document is not part of this repository; it is looked for beside the checkout. What the client sends
beyond it is listed in ``nebula/providers/runpod/newer.py`` and nowhere else.
"""

from __future__ import annotations

import copy
import importlib
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from nebula.providers.runpod import newer

from local.runpod.state import Recorded

DOCUMENT = Path(__file__).parents[3] / "shared" / "reference" / "runpod-openapi-v2.json"
ABSENT = "RunPod's OpenAPI document is not beside the checkout"


@cache
def document() -> dict[str, Any]:
    """The document; empty when it is not there."""
    if not DOCUMENT.exists():
        return {}
    content: dict[str, Any] = json.loads(DOCUMENT.read_text())
    return content


def violations(call: Recorded) -> list[str]:
    """What the document says against a call; empty when it is fine or there is no document."""
    if not document():
        return []
    found = _operation(call.method, call.path)
    if found is None:
        return [f"{call.method} {call.path}: no such operation"]
    template, operation = found
    problems = _query_problems(call, template, operation)
    if "requestBody" in operation:
        return problems + _body_problems(call, template)
    return problems + (["a body where none is defined"] if call.body else [])


def _operation(method: str, path: str) -> tuple[str, dict[str, Any]] | None:
    exact = document()["paths"].get(path, {}).get(method.lower())
    if exact:
        return path, exact
    for template, item in document()["paths"].items():
        if method.lower() in item and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            return template, item[method.lower()]
    return None


def _query_problems(call: Recorded, template: str, operation: Mapping[str, Any]) -> list[str]:
    declared = {one["name"]: one for one in map(_resolved, operation.get("parameters", ())) if one["in"] == "query"}
    newer_here = newer.LIST_PARAMETERS if template in ("/v2/pods", "/v2/registries") else frozenset()
    problems = [
        f"{template}: query parameter {name} is unknown"
        for name in call.query
        if name not in declared and name not in newer_here
    ]
    for name, text in call.query.items():
        if name in declared:
            schema = _resolved(declared[name]["schema"])
            problems += _errors(f"query {name}", schema, _typed(text, schema))
    return problems


def _typed(text: str, schema: Mapping[str, Any]) -> Any:
    if schema.get("type") == "integer" and text.isdigit():
        return int(text)
    return text.split(",") if schema.get("type") == "array" else text


def _body_problems(call: Recorded, template: str) -> list[str]:
    body = json.loads(call.body)
    if (call.method, template) == ("POST", "/v2/pods"):
        body = _without_newer(body)
    schema = _operation(call.method, call.path)[1]["requestBody"]["content"]["application/json"]["schema"]  # type: ignore[index]
    return _errors("body", schema, body)


def _without_newer(body: dict[str, Any]) -> dict[str, Any]:
    body = {name: value for name, value in copy.deepcopy(body).items() if name not in newer.POD_FIELDS}
    if isinstance(body.get("gpu"), dict):
        body["gpu"] = {name: value for name, value in body["gpu"].items() if name not in newer.GPU_FIELDS}
    return body


def _errors(what: str, schema: Mapping[str, Any], value: Any) -> list[str]:
    return [
        f"{what}: {error.json_path}: {error.message}" for error in _validator(json.dumps(schema)).iter_errors(value)
    ]


@cache
def _validator(schema_text: str) -> Any:
    jsonschema: Any = importlib.import_module("jsonschema")
    return jsonschema.Draft202012Validator(json.loads(schema_text) | {"components": document()["components"]})


def _resolved(item: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in item:
        return item
    target: Any = document()
    for part in item["$ref"].removeprefix("#/").split("/"):
        target = target[part]
    return _resolved(target)
