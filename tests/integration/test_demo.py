"""``make demo``, and ``make invoke`` with each sample event."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from local import demo, invoke

pytestmark = [pytest.mark.network, pytest.mark.slow]

EVENTS = Path(__file__).resolve().parents[2] / "events"


def test_the_demo_measures_what_it_promises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.run(tmp_path / "demo") == 0
    shown = capsys.readouterr()
    result = json.loads(shown.out.splitlines()[-1])
    assert result.pop("elapsed_s") > 0
    assert result == {"pods": 3, "running": 3, "failovers": 1, "instances_leaked": 0, "credentials_retired": 1}
    assert "not-a-real-password" not in shown.err + shown.out
    assert _ledger(shown.err) == [
        [("Superseded", "1"), ("Active", "1")],
        [("Retired", "-"), ("Active", "1")],
    ], "the old credential goes with its last workload, the new one stays"
    for word in ("gated", "placed", "refused", "failover", "released", "endpoint", "Running", "gone", "retired"):
        assert f" {word} " in shown.err
    # Only the Pod that declares a port under an open NodePool has an endpoint.
    assert {line.split()[1] for line in shown.err.splitlines() if " endpoint " in line} == {"llm-server"}


def _ledger(timeline: str) -> list[list[tuple[str, str]]]:
    """State and live workloads of every credential, each time that the demo asked for them."""
    tables: list[list[tuple[str, str]]] = []
    for line in timeline.splitlines():
        words = line.split()
        if "make credentials," in line:
            tables.append([])
        elif len(words) > 4 and words[1].startswith("reg0"):
            assert words[2] == "e***", "the user is masked"
            tables[-1].append((words[3], words[4]))
    return tables


@pytest.mark.parametrize(
    ("function", "event", "sent"),
    [
        ("placement", "pod-gated-private-image", "CreateQueue: Claim Placed"),
        ("provisioning", "claim-placed", ""),
        ("status_polling", "schedule-status", ""),
    ],
)
def test_a_sample_event_does_its_work(function: str, event: str, sent: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke.run(function, EVENTS / f"{event}.json") == 0
    shown = capsys.readouterr()
    json.loads(shown.out)
    assert f"sent to {sent}" in shown.err if sent else True


def test_an_event_that_cannot_be_read_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    assert invoke.run("placement", broken) == 2
    assert "broken.json" in capsys.readouterr().err
