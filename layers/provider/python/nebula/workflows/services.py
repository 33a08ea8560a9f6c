"""What a workflow works with: every edge behind a Protocol, built by ``nebula.wiring``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from pydantic import SecretStr

from nebula.clock import Clock
from nebula.events.publisher import Publisher, TickQueue
from nebula.kubernetes.api import Clusters
from nebula.observability import Telemetry
from nebula.providers.base import Providers
from nebula.stores.blocks import BlockStore
from nebula.stores.claims import ClaimStore
from nebula.stores.credentials import CredentialStore
from nebula.stores.sightings import SightingStore


@dataclass(frozen=True)
class Services:
    """The edges and the few numbers of one function.

    ``function`` names the event source (``nebula.<function>``). ``lease`` is how long one function
    call may hold a claim (its timeout plus 30 s). ``longest_call`` is the longest that one outside call can
    take here. ``fingerprint_key`` keys the HMAC of credentials.
    """

    function: str
    installation: str
    clock: Clock
    claims: ClaimStore
    blocks: BlockStore
    credentials: CredentialStore
    sightings: SightingStore
    publisher: Publisher
    ticks: TickQueue
    clusters: Clusters
    providers: Providers
    telemetry: Telemetry
    fingerprint_key: SecretStr
    lease: timedelta = timedelta(seconds=120)
    tick_interval: timedelta = timedelta(seconds=15)
    longest_call: timedelta = timedelta(seconds=20)

    @property
    def source(self) -> str:
        """The event source of this function."""
        return f"nebula.{self.function}"
