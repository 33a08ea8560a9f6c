"""Settings of the functions: read from ``NEBULA_*`` when built, never at import."""

from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """What every function knows. Durations are ISO-8601; a missing variable is named by the error."""

    model_config = SettingsConfigDict(env_prefix="NEBULA_", frozen=True, extra="ignore", hide_input_in_errors=True)

    installation_id: str = Field(min_length=1, max_length=128)
    event_bus: str
    claims_table: str
    blocks_table: str
    credentials_table: str
    providers_path: str
    clusters_path: str
    fingerprint_key_parameter: str
    tick_queue_url: str = ""
    metrics_namespace: str = "Nebula"
    lease: timedelta = timedelta(seconds=120)
    tick_interval: timedelta = timedelta(seconds=15)


class RetirementOverride(BaseModel):
    """What one provider's retirement policy has of its own; what is not given is the general policy's."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    unused_after: timedelta = Field(default=timedelta(0), ge=timedelta(0))
    superseded_after: timedelta = Field(default=timedelta(0), ge=timedelta(0))
    grace: timedelta = Field(default=timedelta(0), ge=timedelta(0))
    max_age: timedelta | None = Field(default=None, ge=timedelta(0))
    dry_run: bool = False


class RetirementSettings(Settings):
    """The retirement policy (docs/credentials.md).

    ``max_age`` may be empty (no limit). ``retirement_overrides`` is JSON by provider, for example
    ``{"runpod": {"unused_after": "P1D"}}``. ``retirement_limit`` is credentials deleted per run and provider.
    """

    unused_after: timedelta = Field(default=timedelta(days=7), ge=timedelta(0))
    superseded_after: timedelta = Field(default=timedelta(hours=1), ge=timedelta(0))
    retirement_grace: timedelta = Field(default=timedelta(minutes=10), ge=timedelta(0))
    max_age: timedelta | None = Field(default=None, ge=timedelta(0))
    retirement_dry_run: bool = False
    retirement_overrides: dict[str, RetirementOverride] = Field(default_factory=dict)
    retirement_limit: int = Field(default=50, ge=1, le=1000)

    @field_validator("max_age", mode="before")
    @classmethod
    def _absent_when_empty(cls, value: object) -> object:
        """A template parameter cannot be absent, only empty."""
        return None if value == "" else value


class SweepSettings(Settings):
    """How the sweep treats owned instances that no claim knows."""

    reap_orphans: str = Field(default="terminate", pattern="^(report|terminate)$")
