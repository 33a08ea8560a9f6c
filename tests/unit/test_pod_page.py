"""docs/pods.md says what the code does: its table is the code's, its words are the code's reasons."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from nebula.domain.claim import TerminationReason
from nebula.kubernetes import names, shape
from nebula.kubernetes.workload_fields import FIELDS

from local.pod_fields_doc import PAGE, page, table


def test_the_table_of_the_page_is_the_table_of_the_code() -> None:
    text = PAGE.read_text()
    assert page(text) == text, "run python -m local.pod_fields_doc"


def test_each_field_has_one_row() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", table(), re.MULTILINE)
    assert rows == sorted(field.path for field in FIELDS)


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="place"):
        page("# nothing here")


def test_every_reason_of_a_shape_that_is_refused_is_on_the_page() -> None:
    reasons = set(re.findall(r'InvalidPodError\(\s*"(\w+)"', Path(shape.__file__).read_text()))
    text = PAGE.read_text()
    assert len(reasons) >= 6
    assert not [reason for reason in reasons if f"`{reason}`" not in text]


def test_the_names_on_the_page_are_the_code_s() -> None:
    text = PAGE.read_text()
    for name in (
        names.LABEL_ENABLED,
        names.LABEL_NODE_POOL,
        names.LABEL_ACCELERATOR_TYPE,
        names.ANNOTATION_INGRESS_PORTS,
        names.ANNOTATION_ENDPOINT,
        names.GATE,
        names.CONDITION_RELEASED,
        names.RESERVED_ENV_PREFIX,
    ):
        assert f"`{name}`" in text
    shown = TerminationReason.PREEMPTED, TerminationReason.INSTANCE_LOST, TerminationReason.START_DEADLINE
    assert all(f"`{reason}`" in text for reason in shown)
