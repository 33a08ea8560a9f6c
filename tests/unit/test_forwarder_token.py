"""The forwarder's token follows the file that the kubelet writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from nebula.clock import ManualClock
from nebula.kubernetes.api import ClusterUnavailableError

from cluster.forwarder.service import FileToken


def test_the_file_is_read_again_after_a_minute_or_a_401(tmp_path: Path) -> None:
    path = tmp_path / "token"
    clock = ManualClock(datetime(2026, 11, 1, tzinfo=UTC))
    source = FileToken(path, clock)
    path.write_text("one\n")
    assert source.token().get_secret_value() == "one"
    path.write_text("two\n")
    clock.advance(timedelta(seconds=59))
    assert source.token().get_secret_value() == "one"
    clock.advance(timedelta(seconds=1))
    assert source.token().get_secret_value() == "two"
    path.write_text("three\n")
    assert source.renew()
    assert source.token().get_secret_value() == "three"


def test_a_file_that_cannot_be_read_is_a_cluster_out_of_reach(tmp_path: Path) -> None:
    with pytest.raises(ClusterUnavailableError, match="FileNotFoundError"):
        FileToken(tmp_path / "none").token()
