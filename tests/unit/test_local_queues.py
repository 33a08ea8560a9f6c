"""Which messages of a batch come back: Lambda's rules for partial failures."""

from __future__ import annotations

from typing import Any

import pytest

from local.queues import failed_items
from local.runtime import Outcome

IDS = ["m1", "m2", "m3"]


@pytest.mark.parametrize("result", [None, {}, {"batchItemFailures": []}, {"batchItemFailures": None}])
def test_an_empty_answer_means_that_all_succeeded(result: Any) -> None:
    assert failed_items(Outcome(result=result), IDS) == set()


def test_only_the_named_items_come_back() -> None:
    result = {"batchItemFailures": [{"itemIdentifier": "m2"}]}
    assert failed_items(Outcome(result=result), IDS) == {"m2"}


def test_a_failed_call_returns_the_whole_batch() -> None:
    assert failed_items(Outcome(error="ValueError"), IDS) == set(IDS)


@pytest.mark.parametrize(
    "result",
    [
        {"batchItemFailures": [{"itemIdentifier": "somebody else's"}]},
        {"batchItemFailures": [{"itemIdentifier": ""}]},
        {"batchItemFailures": [{"wrongKey": "m1"}]},
        {"batchItemFailures": ["m1"]},
        ["m1"],
    ],
)
def test_an_answer_that_cannot_be_read_returns_the_whole_batch(result: Any) -> None:
    assert failed_items(Outcome(result=result), IDS) == set(IDS)
