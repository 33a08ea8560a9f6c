"""The three Kubernetes APIs that the contract suite runs against."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from nebula.kubernetes.client import KubernetesClient
from nebula.kubernetes.transport import Transport

from local.kubernetes.adapter import SERVER, client, session
from local.kubernetes.http_server import KubernetesServer
from local.kubernetes.server import Emulator
from tests.support.kubernetes_api import Api

_ASSETS = os.environ.get("KUBEBUILDER_ASSETS")
#: Why a test marked ``apiserver`` is skipped.
NO_ASSETS = "KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver: `make apiserver-assets` makes one"
_REAL = pytest.param("apiserver", id="apiserver", marks=[pytest.mark.apiserver, pytest.mark.network])
# Without its binaries the real server is left out here and skipped once, in test_kubernetes_contract_client.py:
# one reason in the report instead of a hundred.
TARGETS = (
    pytest.param("in-process", id="in-process"),
    pytest.param("http", id="http", marks=pytest.mark.network),
    *([_REAL] if _ASSETS else []),
)


@contextmanager
def running(target: str) -> Iterator[Api]:
    """An API of the kind named, for one module of tests."""
    if target == "apiserver":
        yield _apiserver()
        return
    emulator = Emulator(schedule=False)
    if target == "in-process":
        yield Api(session(emulator), SERVER, client(emulator, "contract"))
        return
    server = KubernetesServer(emulator).start()
    try:
        transport = Transport(server.url, None, requests.Session())
        yield Api(requests.Session(), server.url, KubernetesClient("contract", transport))
    finally:
        server.stop()


def _apiserver() -> Api:
    if not _ASSETS:
        pytest.skip(NO_ASSETS)
    from tests.support.kubernetes_apiserver import serving

    return serving(Path(_ASSETS))
