"""What every test starts from: no sockets, no real AWS, none of the caller's NEBULA_ variables, choices that repeat."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings
from pytest_socket import disable_socket, enable_socket

from tests.support.runpod_guard import runpod_guard  # noqa: F401  holds for every test

FAKE_AWS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SESSION_TOKEN": "testing",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "POWERTOOLS_TRACE_DISABLED": "1",
}
FOREIGN_PREFIXES = ("NEBULA_", "RUNPOD_", "AWS_ENDPOINT_URL", "AWS_PROFILE")

# The same examples at each run, so that a red build means a change of the code and is red again when repeated.
# New ones: --hypothesis-profile=random. A busy machine must not fail a test, hence no deadline.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None)
settings.load_profile("repeatable")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Block sockets before the fixtures of a test run; only tests marked ``network`` may open one."""
    if item.get_closest_marker("network") is not None:
        enable_socket()
    else:
        disable_socket(allow_unix_socket=True)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Give sockets back to whatever is not a test (fixtures of a session, plugins)."""
    if nextitem is None:
        enable_socket()


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(FOREIGN_PREFIXES):
            monkeypatch.delenv(name)
    for name, value in FAKE_AWS.items():
        monkeypatch.setenv(name, value)
