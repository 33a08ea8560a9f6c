"""What a person reads on a Pod is in the docs word for word, and names the reason and the next try."""

from __future__ import annotations

import pytest

from tests.support.describe import describe
from tests.support.describe_page import PAGE, page
from tests.support.described_pods import CASES


@pytest.mark.parametrize("case", CASES)
def test_the_page_shows_what_a_run_shows(case: str) -> None:
    text = PAGE.read_text()
    assert page(text, case) == text, "run python -m tests.support.describe_page"


@pytest.mark.parametrize(
    ("case", "reason", "next_try"),
    [
        ("gated", "NoCapacity from simulated: no H100 left in sim-1", "next try within 1 min"),
        ("placed", "NoCapacity from simulated: no H100 left in sim-1", "runs on simulated as simulated-000001"),
        ("failed", "exit code 3", "no controller owns the Pod, so nothing tries again"),
        ("preempted", "the provider reclaimed the instance", "Job fine-tune decides whether there is another try"),
    ],
)
def test_each_text_names_the_reason_and_what_comes_next(case: str, reason: str, next_try: str) -> None:
    told = describe(CASES[case]())
    assert reason in told
    assert next_try in told


def test_a_page_without_the_place_is_refused() -> None:
    with pytest.raises(ValueError, match="0 places for gated"):
        page("# nothing here", "gated")
