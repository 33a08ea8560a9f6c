"""TLS to an API server: only the given authority is trusted, and only for the server's own name."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from nebula.clock import ManualClock
from nebula.kubernetes.api import ClusterUnavailableError
from nebula.kubernetes.clusters import ParameterClusters
from nebula.parameters import MemoryParameters

from local.certificates import Certificates, for_loopback
from local.kubeconfig import server_context
from local.kubernetes.access import User
from local.kubernetes.http_server import KubernetesServer
from local.kubernetes.server import Emulator

pytestmark = pytest.mark.network
NOW = datetime.now(UTC)


class Cluster:
    def __init__(self, certificates: Certificates) -> None:
        emulator = Emulator(tokens={"t": User("admin", ("system:masters",))})
        self.server = KubernetesServer(emulator, context=server_context(certificates)).start()
        self.port = self.server.server_address[1]

    def uid(self, ca: str | None, host: str = "127.0.0.1") -> str:
        """The cluster's uid, read as a function does."""
        encoded = None if ca is None else base64.b64encode(ca.encode()).decode()
        access = {"server": f"https://{host}:{self.port}", "ca": encoded, "auth": {"type": "bearer", "token": "t"}}
        clusters = ParameterClusters(MemoryParameters({"/c/main": json.dumps(access)}), "/c", ManualClock(NOW))
        return clusters.get("main").cluster_uid()


OWN = for_loopback()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster(OWN)
    yield made
    made.server.stop()


def test_the_given_authority_is_trusted_by_address_and_by_name(cluster: Cluster) -> None:
    assert cluster.uid(OWN.authority) == cluster.uid(OWN.authority, "localhost")


def test_certificates_without_key_identifiers_are_trusted_as_kubectl_does() -> None:
    """Those of older EKS clusters, which Python's strict check refuses since 3.13 (kubernetes-client/python#2394)."""
    unnamed = for_loopback(identified=False)
    made = Cluster(unnamed)
    try:
        assert made.uid(unnamed.authority)
        with pytest.raises(ClusterUnavailableError):
            made.uid(OWN.authority)
    finally:
        made.server.stop()


def test_without_an_authority_only_the_public_ones_are(cluster: Cluster) -> None:
    with pytest.raises(ClusterUnavailableError):
        cluster.uid(None)


def test_another_authority_of_the_same_name_is_not_trusted(cluster: Cluster) -> None:
    with pytest.raises(ClusterUnavailableError):
        cluster.uid(for_loopback().authority)


@pytest.mark.parametrize("age", [timedelta(days=8), timedelta(days=-1)])
def test_a_certificate_out_of_its_time_is_refused(age: timedelta) -> None:
    stale = for_loopback(NOW - age)
    made = Cluster(stale)
    try:
        with pytest.raises(ClusterUnavailableError):
            made.uid(stale.authority)
    finally:
        made.server.stop()


def test_a_certificate_of_another_host_is_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address resolves to the server, which shows a certificate without that name."""
    import socket

    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest, **more: real("127.0.0.1", *rest, **more))
    assert cluster.uid(OWN.authority, "localhost")
    with pytest.raises(ClusterUnavailableError):
        cluster.uid(OWN.authority, "kubernetes.invalid")
