"""The account's pods with the certainty that an absence needs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from nebula.clock import Clock
from nebula.providers.errors import ProviderError
from nebula.providers.runpod.client import LIST_TIME, RunPodClient
from nebula.providers.runpod.paging import Listing

MAX_READ_SINGLY = 20


class PodReader:
    """Lists pods, and reads singly those whose mark the list does not show."""

    def __init__(self, client: RunPodClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    def read(self) -> Listing:
        """Every pod of the account. Raises a ``ProviderError`` when not even one page could be read.

        What takes longer than ``LIST_TIME`` breaks off there, and is incomplete.

        Ownership is in ``env``. A pod whose answer leaves it out might be ours, so it is read by id;
        if that does not tell either, the listing counts as incomplete.
        """
        until = self._clock.now() + LIST_TIME
        listing = self._client.list_pods(until)
        hidden = [key for key, pod in listing.items.items() if not _tells_environment(pod)]
        for key in hidden[:MAX_READ_SINGLY]:
            self._read_singly(listing, key, until)
        hidden = [key for key in hidden if key in listing.items and not _tells_environment(listing.items[key])]
        if hidden and listing.complete:
            return replace(listing, problem=f"{len(hidden)} pods without env, {hidden[0]} the first")
        return listing

    def _read_singly(self, listing: Listing, key: str, until: datetime) -> None:
        try:
            pod = self._client.get_pod(key, until=until)
        except ProviderError:
            return
        if pod is None:
            del listing.items[key]
        elif pod["id"] == key:
            listing.items[key] = pod


def _tells_environment(pod: dict[str, Any]) -> bool:
    return "env" in pod and (pod["env"] is None or isinstance(pod["env"], dict))
