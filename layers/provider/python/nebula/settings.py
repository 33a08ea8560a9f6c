"""Settings of the functions: read from ``NEBULA_*`` when built, never at import (design §2)."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field
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
    lease: timedelta = timedelta(seconds=120)
    tick_interval: timedelta = timedelta(seconds=15)


class RetirementSettings(Settings):
    """The retirement policy (design §9)."""

    unused_after: timedelta = timedelta(days=7)
    superseded_after: timedelta = timedelta(hours=1)
    retirement_grace: timedelta = timedelta(minutes=10)
    max_age: timedelta | None = None
    retirement_dry_run: bool = False


class SweepSettings(Settings):
    """How the sweep treats owned instances that no claim knows."""

    reap_orphans: str = Field(default="terminate", pattern="^(report|terminate)$")
