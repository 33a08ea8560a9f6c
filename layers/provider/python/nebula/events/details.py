"""The detail of every event, one model per detail-type (docs/events.md).

Details never carry a Pod's spec: it may hold secrets.
"""

from enum import StrEnum
from typing import Any, ClassVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1
_NAME = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"


class DetailType(StrEnum):
    """Every detail-type that a function is woken by or publishes."""

    POD_GATED = "Pod Gated"
    POD_CHANGED = "Pod Changed"
    POD_DELETED = "Pod Deleted"
    SECRET_CHANGED = "Secret Changed"  # noqa: S105 - a detail-type, not a secret
    NODEPOOL_CHANGED = "NodePool Changed"
    CLAIM_PLACED = "Claim Placed"
    CLAIM_DUE = "Claim Due"
    INSTANCE_READY = "Instance Ready"
    PROVISION_REJECTED = "Provision Rejected"
    CLAIM_ABANDONED = "Claim Abandoned"
    STATUS_POLL_SCHEDULED = "Status Poll Scheduled"
    STATUS_TICK = "Status Tick"
    CREDENTIAL_RETIREMENT_SCHEDULED = "Credential Retirement Scheduled"
    CREDENTIAL_CREATED = "Credential Created"
    CREDENTIAL_SUPERSEDED = "Credential Superseded"
    CREDENTIAL_RETIRED = "Credential Retired"
    CREDENTIAL_RETIREMENT_DEFERRED = "Credential Retirement Deferred"
    CREDENTIAL_REVOCATION_REQUIRED = "Credential Revocation Required"
    CREDENTIAL_REVOCATION_ACKNOWLEDGED = "Credential Revocation Acknowledged"
    EXPLAIN = "Explain"


class Detail(BaseModel):
    """What every detail has. Unknown fields are ignored: a newer publisher may add some."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, strict=True)

    detail_types: ClassVar[tuple[DetailType, ...]] = ()
    schema_version: int = Field(default=SCHEMA_VERSION, ge=1)


class PodDetail(Detail):
    """A Pod was gated, changed or deleted."""

    detail_types: ClassVar[tuple[DetailType, ...]] = (
        DetailType.POD_GATED,
        DetailType.POD_CHANGED,
        DetailType.POD_DELETED,
    )
    cluster: str = Field(min_length=1, max_length=100)
    namespace: str = Field(min_length=1, max_length=63, pattern=_NAME)
    name: str = Field(min_length=1, max_length=253, pattern=_NAME)
    uid: str = Field(min_length=1, max_length=64)
    resource_version: str = Field(default="", max_length=64)


class SecretDetail(Detail):
    """A Secret changed or was deleted; its name, never its data."""

    detail_types: ClassVar[tuple[DetailType, ...]] = (DetailType.SECRET_CHANGED,)
    cluster: str = Field(min_length=1, max_length=100)
    namespace: str = Field(min_length=1, max_length=63, pattern=_NAME)
    name: str = Field(min_length=1, max_length=253, pattern=_NAME)


class NodePoolDetail(Detail):
    """A NodePool was created, changed or deleted."""

    detail_types: ClassVar[tuple[DetailType, ...]] = (DetailType.NODEPOOL_CHANGED,)
    cluster: str = Field(min_length=1, max_length=100)
    name: str = Field(min_length=1, max_length=253, pattern=_NAME)


class ClaimDetail(Detail):
    """Something about a claim; a hint to re-read it."""

    detail_types: ClassVar[tuple[DetailType, ...]] = (
        DetailType.CLAIM_PLACED,
        DetailType.CLAIM_DUE,
        DetailType.INSTANCE_READY,
        DetailType.PROVISION_REJECTED,
        DetailType.CLAIM_ABANDONED,
    )
    cluster: str = Field(min_length=1, max_length=100)
    claim_id: str = Field(pattern=r"^[0-9a-f]{32}$")
    phase: str = Field(max_length=32)
    version: int = Field(ge=1)
    provider: str = Field(default="", max_length=63)
    reason: str = Field(default="", max_length=256)


class TickDetail(Detail):
    """A status tick or the schedule behind it. ``due_at`` is when the tick should run."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, strict=False)

    detail_types: ClassVar[tuple[DetailType, ...]] = (
        DetailType.STATUS_POLL_SCHEDULED,
        DetailType.STATUS_TICK,
        DetailType.CREDENTIAL_RETIREMENT_SCHEDULED,
    )
    due_at: AwareDatetime | None = None


class CredentialDetail(Detail):
    """Something happened to a lent credential; no secret in it."""

    detail_types: ClassVar[tuple[DetailType, ...]] = (
        DetailType.CREDENTIAL_CREATED,
        DetailType.CREDENTIAL_SUPERSEDED,
        DetailType.CREDENTIAL_RETIRED,
        DetailType.CREDENTIAL_RETIREMENT_DEFERRED,
        DetailType.CREDENTIAL_REVOCATION_REQUIRED,
        DetailType.CREDENTIAL_REVOCATION_ACKNOWLEDGED,
    )
    credential_key: str = Field(max_length=400)
    provider: str = Field(max_length=63)
    registry: str = Field(default="", max_length=400)
    reason: str = Field(default="", max_length=512)


class ExplainDetail(Detail):
    """A dry run: a Pod and its NodePool as objects. Goes to the function directly, never over the bus.

    ``cluster`` may be left out where the installation has one; without ``node_pool`` the NodePool that
    the Pod names is read there.
    """

    detail_types: ClassVar[tuple[DetailType, ...]] = (DetailType.EXPLAIN,)
    pod: dict[str, Any] = Field(repr=False)
    node_pool: dict[str, Any] | None = None
    cluster: str = Field(default="", max_length=100)
