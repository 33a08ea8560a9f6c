"""What a Pod asks to run, free of any provider's words."""

from collections.abc import Mapping
from enum import StrEnum

from pydantic import AwareDatetime, Field, SecretStr

from nebula.domain.base import Model
from nebula.domain.candidate import Shape


class RestartPolicy(StrEnum):
    """``spec.restartPolicy`` of the Pod."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"


class PortProtocol(StrEnum):
    """How a port is published: behind the provider's HTTP proxy, or as plain TCP."""

    HTTP = "HTTP"
    TCP = "TCP"


class PublishedPort(Model):
    """A container port that the NodePool opened and the Pod did not close."""

    port: int = Field(ge=1, le=65535)
    protocol: PortProtocol = PortProtocol.HTTP


class EgressMode(StrEnum):
    """``spec.egress.mode`` of the NodePool."""

    OPEN = "Open"
    BLOCKED = "Blocked"
    ALLOWLIST = "Allowlist"


class Egress(Model):
    """Outbound policy that the provider must enforce; ``targets`` only with Allowlist."""

    mode: EgressMode = EgressMode.OPEN
    targets: tuple[str, ...] = ()


class PullCredential(Model):
    """User and password that pull one image, as found in a Pod's ``imagePullSecrets``.

    ``registry`` is the matched key (host, port and path); ``source`` is
    ``cluster/namespace/Secret``, ``cluster_uid`` tells which cluster stands behind that name (empty: not
    known). ``expires_at`` is set for passwords known to expire (ECR: 12 h).
    """

    registry: str
    username: SecretStr
    password: SecretStr
    source: str
    cluster_uid: str = ""
    expires_at: AwareDatetime | None = None


class Workload(Model):
    """The one container of a Pod, resolved: what ``provision`` hands to a provider.

    ``command`` overrides the image's ENTRYPOINT and ``args`` its CMD; None keeps the image's own.
    Values of ``env`` are secrets until proven otherwise. ``command`` and ``args`` may hold expanded
    secrets and are kept out of ``repr``.
    """

    image: str
    command: tuple[str, ...] | None = Field(default=None, repr=False)
    args: tuple[str, ...] | None = Field(default=None, repr=False)
    env: Mapping[str, SecretStr] = Field(default_factory=dict)
    ports: tuple[PublishedPort, ...] = ()
    shape: Shape
    restart_policy: RestartPolicy = RestartPolicy.ALWAYS
    egress: Egress = Egress()
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int = 30
    working_dir: str | None = None
