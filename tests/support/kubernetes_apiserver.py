"""A real etcd and kube-apiserver for one module of tests, from a folder like ``KUBEBUILDER_ASSETS``."""

from __future__ import annotations

import atexit
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import requests
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from nebula.kubernetes.client import KubernetesClient
from nebula.kubernetes.transport import StaticToken, Transport, new_session
from pydantic import SecretStr

from tests.support.kubernetes_api import NODE_POOLS, Api

ADMIN = "admin-token"
NEBULA = "nebula-token"
FORWARDER = "forwarder-token"
_TOKENS = f"""{ADMIN},admin,1,"system:masters"
{NEBULA},nebula,2,"nebula:control-plane"
{FORWARDER},system:serviceaccount:nebula-system:nebula-forwarder,3,"system:serviceaccounts"
"""
_CRD = Path(__file__).parents[2] / "cluster" / "crds"


class RealServer:
    """Where a started server listens, and sessions that trust its self-signed certificate and nothing else."""

    def __init__(self, url: str, certificate: Path) -> None:
        self.url = url
        self.certificate = certificate

    def session(self, token: str = ADMIN) -> requests.Session:
        """A session with a token, for raw calls."""
        session = requests.Session()
        session.trust_env = False
        session.verify = str(self.certificate)
        session.headers["Authorization"] = f"Bearer {token}"
        return session

    def client(self, token: str = ADMIN) -> KubernetesClient:
        """The product's client with a token."""
        return KubernetesClient("real", self.transport(token))

    def transport(self, token: str = ADMIN) -> Transport:
        """The product's transport with a token."""
        session = new_session(self.certificate.read_text(encoding="ascii"))
        return Transport(self.url, StaticToken(SecretStr(token)), session)


@contextmanager
def started(assets: Path) -> Iterator[RealServer]:
    """Run etcd and kube-apiserver from ``assets`` until the block ends."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        client, peer, secure = _free_port(), _free_port(), _free_port()
        etcd = f"http://127.0.0.1:{client}"
        stack.enter_context(_process(_etcd(assets, folder, etcd, peer), folder / "etcd.log"))
        (folder / "tokens.csv").write_text(_TOKENS, encoding="ascii")
        _keys(folder)
        stack.enter_context(_process(_apiserver(assets, folder, etcd, secure), folder / "apiserver.log"))
        server = RealServer(f"https://127.0.0.1:{secure}", folder / "certs" / "apiserver.crt")
        _await_ready(server, folder / "apiserver.log")
        _install_node_pools(server)
        yield server


@cache
def shared(assets: Path) -> RealServer:
    """One server for the whole run, stopped when the process ends: starting one takes seconds."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(started(assets))


def serving(assets: Path) -> Api:
    """The contract suite's view of the shared server."""
    server = shared(assets)
    return Api(server.session(), server.url, server.client())


def _etcd(assets: Path, folder: Path, url: str, peer: int) -> list[str]:
    return [
        str(assets / "etcd"),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        "--unsafe-no-fsync",
    ]


def _apiserver(assets: Path, folder: Path, etcd: str, port: int) -> list[str]:
    return [
        str(assets / "kube-apiserver"),
        f"--etcd-servers={etcd}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--cert-dir={folder / 'certs'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'sa.pub'}",
        f"--service-account-signing-key-file={folder / 'sa.key'}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=RBAC",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged",
        # The etcd from PyPI is 3.5.1: it lacks the progress notifications that consistent reads from the cache need.
        "--watch-cache=false",
    ]


def _keys(folder: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem, bare = serialization.Encoding.PEM, serialization.NoEncryption()
    (folder / "sa.key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.TraditionalOpenSSL, bare))
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    (folder / "sa.pub").write_bytes(key.public_key().public_bytes(pem, public))


@contextmanager
def _process(command: Sequence[str], log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            # Asked nicely, the server waits for its watches to end; there is nothing to lose here.
            process.kill()
            process.wait(20)


def _await_ready(server: RealServer, log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            if server.session().get(f"{server.url}/readyz", timeout=5).status_code == requests.codes.ok:
                return
        except (requests.RequestException, OSError):
            pass
        time.sleep(0.2)
    raise TimeoutError(log.read_text(encoding="utf-8", errors="replace")[-2000:])


def _install_node_pools(server: RealServer) -> None:
    session = server.session()
    for path in sorted(_CRD.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            url = f"{server.url}/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            session.post(url, json=document, timeout=10).raise_for_status()
    deadline = time.monotonic() + 30
    while session.get(server.url + NODE_POOLS, timeout=10).status_code != requests.codes.ok:
        if time.monotonic() > deadline:
            raise TimeoutError("the NodePool kind is not served")
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
