"""A small installation for credentials: Secrets by GET, memory ledgers, simulated providers, canary passwords."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from nebula.clock import ManualClock
from nebula.credentials.fingerprint import fingerprint
from nebula.credentials.policy import RetirementPolicies, RetirementPolicy
from nebula.domain.claim import Claim
from nebula.domain.credential import Credential, CredentialKey, CredentialState
from nebula.domain.workload import PullCredential
from nebula.events.details import CredentialDetail, DetailType
from nebula.events.memory import MemoryPublisher, MemoryTickQueue
from nebula.kubernetes.api import ClusterUnavailableError, ForbiddenError, KubernetesApi
from nebula.kubernetes.pull_secrets import find_pull_credential
from nebula.observability import MemoryTelemetry
from nebula.providers.simulated import SimulatedProvider
from nebula.stores.memory_blocks import MemoryBlockStore
from nebula.stores.memory_claims import MemoryClaimStore
from nebula.stores.memory_credentials import MemoryCredentialStore
from nebula.stores.memory_sightings import MemorySightingStore
from nebula.workflows.lend import ensure_credential, record_credential
from nebula.workflows.retire import RetirementReport, retire_credentials
from nebula.workflows.services import Services
from pydantic import SecretStr

from tests.support.claims import attempt, placed, terminated
from tests.support.simulated import request_for
from tests.support.world import FixedProviders

START = datetime(2026, 11, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
IMAGE = "registry.example.com/team/train:1"
REGISTRY = "registry.example.com"
USER = "canary-user-5b1e"
PASSWORD = "canary-password-90cd"
KEY = SecretStr("k" * 32)
POLICY = RetirementPolicy(
    unused_after=timedelta(days=7), superseded_after=timedelta(hours=1), grace=timedelta(minutes=10)
)
Object = dict[str, Any]


def docker_config(*entries: tuple[str, str, str]) -> Object:
    """``{"auths": …}`` for (registry, user, password) triples."""
    return {"auths": {registry: {"username": user, "password": password} for registry, user, password in entries}}


def pull_secret(config: object, *, legacy: bool = False, written: datetime = START) -> Object:
    """A pull Secret as the API gives it; ``config`` is dumped unless it is bytes already."""
    text = config if isinstance(config, bytes) else json.dumps(config).encode()
    kind = "dockercfg" if legacy else "dockerconfigjson"
    return {
        "type": f"kubernetes.io/{kind}",
        "metadata": {"creationTimestamp": written.strftime("%Y-%m-%dT%H:%M:%SZ")},
        "data": {f".{kind}": base64.b64encode(text).decode()},
    }


def pod(*secrets: str, namespace: str = "default") -> Any:
    """A Pod that names these pull Secrets."""
    spec = {"imagePullSecrets": [{"name": name} for name in secrets]}
    return SimpleNamespace(namespace=namespace, object={"spec": spec})


class SecretsApi:
    """The two calls of a cluster that credentials make. ``reads`` lists which Secrets were asked for."""

    def __init__(self, name: str = "prod") -> None:
        self.name = name
        self.secrets: dict[tuple[str, str], Object] = {}
        self.forbidden: set[str] = set()
        self.down = False
        self.uid = f"uid-of-{name}"
        self.reads: list[tuple[str, str]] = []

    def cluster_uid(self) -> str:
        if self.down:
            raise ClusterUnavailableError("no answer")
        if not self.uid:
            raise ForbiddenError("namespaces is forbidden")
        return self.uid

    def get_secret(self, namespace: str, name: str) -> Object | None:
        self.reads.append((namespace, name))
        if self.down:
            raise ClusterUnavailableError("no answer")
        if namespace in self.forbidden:
            raise ForbiddenError("secrets is forbidden")
        return self.secrets.get((namespace, name))


class SomeClusters:
    """Clusters by name."""

    def __init__(self, *apis: SecretsApi) -> None:
        self.apis = {api.name: api for api in apis}

    def names(self) -> Sequence[str]:
        return sorted(self.apis)

    def get(self, name: str) -> KubernetesApi:
        return cast("KubernetesApi", self.apis[name])


class Lending:
    """Everything of one installation that credentials touch."""

    def __init__(self, *providers: SimulatedProvider, account_id: str | None = "acct") -> None:
        self.clock = ManualClock(START)
        self.api = SecretsApi()
        self.home = self.api.uid
        self.clusters = SomeClusters(self.api)
        self.provider = providers[0] if providers else SimulatedProvider(self.clock, account_id=account_id)
        self.providers = FixedProviders(*(providers or (self.provider,)))
        self.claims = MemoryClaimStore()
        self.credentials = MemoryCredentialStore()
        self.publisher = MemoryPublisher(self.clock)
        self.telemetry = MemoryTelemetry()

    def services(self, **changes: Any) -> Services:
        """The edges as a function sees them."""
        edges: dict[str, Any] = {
            "function": "provisioning",
            "installation": "test",
            "clock": self.clock,
            "claims": self.claims,
            "blocks": MemoryBlockStore(),
            "credentials": self.credentials,
            "sightings": MemorySightingStore(),
            "publisher": self.publisher,
            "ticks": MemoryTickQueue(self.clock),
            "clusters": self.clusters,
            "providers": self.providers,
            "telemetry": self.telemetry,
            "fingerprint_key": KEY,
        }
        return Services(**(edges | changes))

    # The user's side

    def put_secret(self, password: str = PASSWORD, *, name: str = "pull", namespace: str = "default") -> None:
        """Create or rotate a pull Secret."""
        config = docker_config((REGISTRY, USER, password))
        self.api.secrets[namespace, name] = pull_secret(config, written=self.clock.now())

    def delete_secret(self, name: str = "pull", namespace: str = "default") -> None:
        """Delete a pull Secret."""
        self.api.secrets.pop((namespace, name), None)

    def pull(self, *secrets: str, namespace: str = "default") -> PullCredential:
        """What the Secrets yield for the image."""
        found = find_pull_credential(
            cast("KubernetesApi", self.api), pod(*(secrets or ("pull",)), namespace=namespace), IMAGE
        )
        assert found.credential is not None
        return found.credential.model_copy(update={"cluster_uid": self.home})

    # The control plane's side

    def record(self, password: str | None = None) -> tuple[CredentialKey, PullCredential]:
        """Write or touch the row, as provisioning does before its claim."""
        if password is not None:
            self.put_secret(password)
        pull = self.pull()
        return record_credential(self.services(), self.provider, pull), pull

    def start(self, name: str = "train", *secrets: str) -> Claim:
        """A Pod's whole way to its machine: row, claim, provider object, machine."""
        pull = self.pull(*secrets)
        key = record_credential(self.services(), self.provider, pull)
        claim = self.claims.create(placed(name, credential_key=str(key), attempts=(attempt(),)))
        object_id = ensure_credential(self.services(), self.provider, key, pull)
        self.provider.provision(request_for(claim=claim.claim_id, registry_credential_id=object_id))
        return claim

    def change_key(self, key: str) -> None:
        """The operator puts another key of the provider."""
        self.providers.keys[self.provider.name] = key

    def end(self, claim: Claim) -> None:
        """The Pod is deleted, its machine is gone, its claim ends."""
        for machine in self.provider.console.owned():
            if machine.mark is not None and machine.mark.claim_id == claim.claim_id:
                self.provider.console.delete(machine.id)
        standing = self.claims.get(claim.claim_id)
        assert standing is not None
        self.claims.save(standing, terminated(standing))

    def retire(self, policy: RetirementPolicy = POLICY, **bounds: Any) -> RetirementReport:
        """One run of the schedule."""
        policies = RetirementPolicies(default=policy, **bounds)
        return retire_credentials(self.services(function="credential_retirement"), policies)

    # What to look at

    def rows(self) -> list[Credential]:
        """Every row, oldest first."""
        return sorted(self.credentials.all(include_retired=True), key=lambda row: (row.created_at, str(row.key)))

    def fingerprint(self, password: str = PASSWORD) -> str:
        """What the ledger calls a password of the usual user."""
        return fingerprint(KEY, REGISTRY, SecretStr(USER), SecretStr(password))

    def row(self) -> Credential:
        """The only row."""
        (only,) = self.rows()
        return only

    def states(self) -> list[CredentialState]:
        """The states of all rows, oldest first."""
        return [row.state for row in self.rows()]

    def objects(self) -> list[str]:
        """Names of what lies at the provider, without a call."""
        return sorted(found.name for found in self.provider._objects.values())

    def told(self, kind: DetailType) -> list[CredentialDetail]:
        """The details of every event of a type."""
        return [cast("CredentialDetail", event.detail) for event in self.publisher.of_type(kind)]

    def everything_said(self) -> str:
        """All that a run leaves anywhere: log, metrics, events, rows, claims."""
        rows = [row.model_dump_json() for row in self.rows()]
        events = [event.model_dump_json(serialize_as_any=True) for event in self.publisher.events]
        return json.dumps([str(self.telemetry), rows, events, [c.model_dump_json() for c in self.claims.all()]])
