"""The installation's clusters, from Parameter Store: one SecureString per cluster.

``<CLUSTERS_PATH>/<name>`` holds ``{"server": URL, "ca": base64 of a PEM or null, "auth": ...}`` with ``auth`` either
``{"type": "bearer", "token": ...}`` or ``{"type": "eks", "cluster": ..., "region": ...}``. Without ``ca`` the
public roots are trusted. The parameter may hold the ARN of a secret that holds that JSON (``secret_references``).
"""

import base64
import binascii
import ssl
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Annotated, Literal

import requests
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from nebula.clock import Clock
from nebula.http import Limits
from nebula.kubernetes.api import ClusterUnavailableError, KubernetesApi
from nebula.kubernetes.client import KubernetesClient
from nebula.kubernetes.eks import EksToken
from nebula.kubernetes.transport import LIMITS, StaticToken, TokenSource, Transport, new_session
from nebula.parameters import Parameters, ParameterUnavailableError

SessionFactory = Callable[[str | None], requests.Session]


class BearerAuth(BaseModel):
    """A token of a ServiceAccount or of the cluster's own kind."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    type: Literal["bearer"]
    token: SecretStr = Field(min_length=1)


class EksAuth(BaseModel):
    """The function's own role, through an access entry of the cluster."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    type: Literal["eks"]
    cluster: str = Field(min_length=1, max_length=100)
    region: str = Field(pattern=r"^[a-z]{2,}(-[a-z]+)+-\d$")


class ClusterConfig(BaseModel):
    """How to reach one cluster. Plain http is for this machine only: a token must not travel in the clear."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    server: str = Field(
        pattern=r"^(https://[^/\s]+|http://(127\.0\.0\.1|localhost|host\.docker\.internal)(:\d+)?)(/[^\s]*)?$"
    )
    ca: str | None = None
    auth: Annotated[BearerAuth | EksAuth, Field(discriminator="type")]

    def ca_pem(self) -> str | None:
        """The certificate authority as PEM; ValueError when it is no base64 text."""
        if not self.ca:
            return None
        try:
            return base64.b64decode(self.ca, validate=True).decode("ascii")
        except (binascii.Error, UnicodeDecodeError):
            raise ValueError("ca is not the base64 of a PEM") from None


class ParameterClusters:
    """``Clusters`` over a parameter source: one client per cluster, rebuilt when its parameter changes."""

    def __init__(
        self,
        parameters: Parameters,
        path: str,
        clock: Clock,
        *,
        limits: Limits = LIMITS,
        sessions: SessionFactory = new_session,
    ) -> None:
        self._parameters = parameters
        self._path = path.rstrip("/")
        self._clock = clock
        self._limits = limits
        self._sessions = sessions
        self._lock = Lock()
        self._built: dict[str, tuple[str, KubernetesClient]] = {}

    def names(self) -> Sequence[str]:
        """Configured cluster names, sorted."""
        prefix = self._path + "/"
        return tuple(sorted(name.removeprefix(prefix) for name in self._parameters.names(self._path)))

    def get(self, name: str) -> KubernetesApi:
        """The client of a cluster. KeyError: no such parameter; ClusterUnavailableError: it cannot be read."""
        try:
            found = self._parameters.get(f"{self._path}/{name}")
        except ParameterUnavailableError as error:
            raise ClusterUnavailableError(str(error)) from None
        if found is None:
            raise KeyError(name)
        text = found.get_secret_value()
        with self._lock:
            built = self._built.get(name)
            if built is None or built[0] != text:
                built = (text, self._build(name, text))
                self._built[name] = built
            return built[1]

    def _build(self, name: str, text: str) -> KubernetesClient:
        try:
            config = ClusterConfig.model_validate_json(text)
            session = self._sessions(config.ca_pem())
        except ValidationError as error:
            fields = sorted({".".join(str(part) for part in item["loc"]) or "JSON" for item in error.errors()})
            raise ClusterUnavailableError(f"the parameter of cluster {name} is wrong in: {', '.join(fields)}") from None
        except (ValueError, ssl.SSLError):
            raise ClusterUnavailableError(f"the parameter of cluster {name} is wrong in: ca") from None
        return KubernetesClient(name, Transport(config.server, self._tokens(config), session, limits=self._limits))

    def _tokens(self, config: ClusterConfig) -> TokenSource:
        if isinstance(config.auth, BearerAuth):
            return StaticToken(config.auth.token)
        return EksToken(config.auth.cluster, config.auth.region, self._clock)
