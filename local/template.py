"""Read ``template.yaml`` and transform it as CloudFormation would, without an account or a network.

The SAM translator refuses local paths, which ``sam deploy`` would have uploaded; they become ``s3://``
URIs here. Intrinsic functions stay as they are (``{"Ref": ...}``, ``{"Fn::GetAtt": [...]}``).
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

Template = dict[str, Any]

TEMPLATE = Path(__file__).resolve().parent.parent / "template.yaml"
REGION = "us-east-1"
_LOCAL_URI_PROPERTIES = ("CodeUri", "ContentUri")


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms (``!Ref``, ``!GetAtt``, ``!Sub`` ...)."""


def _intrinsic(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)  # type: ignore[arg-type]
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _intrinsic)


def load(path: Path = TEMPLATE) -> Template:
    """The template as written, short forms expanded."""
    loaded = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader
    if not isinstance(loaded, dict):
        raise TypeError(f"{path} holds no template")
    return loaded


def transform(template: Template, *, region: str = REGION) -> Template:
    """The template with SAM's resources expanded; the argument is left alone."""
    prepared = copy.deepcopy(template)
    for resource in prepared["Resources"].values():
        properties = resource.get("Properties", {})
        for name in _LOCAL_URI_PROPERTIES:
            if name in properties:
                properties[name] = f"s3://local/{str(properties[name]).strip('/')}"
    translator = Translator({}, Parser(), boto_session=_Session(region))
    transformed: Template = translator.translate(prepared, parameter_values={}, feature_toggle=None)
    return transformed


class _Session:
    """What the translator asks a boto session for: the region, which picks the partition."""

    def __init__(self, region: str) -> None:
        self.region_name = region
