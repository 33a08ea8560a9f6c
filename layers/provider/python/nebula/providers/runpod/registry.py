"""RunPod's registry credentials: found by name or made, never made twice where that can be helped.

A credential is name, user and password, without a host. RunPod's v2 document does not say whether
names are unique, nor what a duplicate is answered: both are met by listing again.
"""

from __future__ import annotations

from threading import Lock

from pydantic import SecretStr

from nebula.providers.base import RegistryObject
from nebula.providers.errors import InvalidWorkloadError, ProviderError, ProviderUnavailableError
from nebula.providers.runpod.client import RunPodClient
from nebula.providers.runpod.paging import Listing


class RunPodRegistry:
    """See ``RegistryCredentials``. Ids are kept per warm process; secrets never are."""

    def __init__(self, client: RunPodClient) -> None:
        self._client = client
        self._lock = Lock()
        self._ids: dict[str, str] = {}

    def ensure(self, name: str, username: SecretStr, password: SecretStr) -> str:
        """See ``RegistryCredentials.ensure_registry_credential``.

        An empty user or password raises ``InvalidWorkloadError``: the pull is never made anonymous instead.
        """
        parts = {"name": name, "user": username.get_secret_value(), "password": password.get_secret_value()}
        missing = [word for word, text in parts.items() if not text]
        if missing:
            raise InvalidWorkloadError(f"the registry credential has no {' and no '.join(missing)}")
        with self._lock:
            known = self._ids.get(name) or self._find(self._client.list_registries(), name)
            self._ids[name] = known or self._create(name, username, password)
            return self._ids[name]

    def forget(self, name: str) -> None:
        """Drop the kept id of a name."""
        with self._lock:
            self._ids.pop(name, None)

    def forget_id(self, credential_id: str) -> None:
        """Drop whatever name an id was kept for."""
        with self._lock:
            self._ids = {name: known for name, known in self._ids.items() if known != credential_id}

    def list(self) -> tuple[RegistryObject, ...]:
        """Every credential with an id. Raises ``ProviderUnavailableError`` when the listing is not complete."""
        listing = self._client.list_registries()
        if not listing.complete:
            raise ProviderUnavailableError(f"listing registry credentials: {listing.problem}", code="list")
        return tuple(RegistryObject(id=key, name=_name(item)) for key, item in listing.items.items())

    def delete(self, credential_id: str) -> None:
        """See ``RegistryCredentials.delete_registry_credential``."""
        self.forget_id(credential_id)
        self._client.delete_registry(credential_id)

    def _create(self, name: str, username: SecretStr, password: SecretStr) -> str:
        """Create; after a failure whatever stands under that name is taken, else the create's error is raised."""
        try:
            return str(self._client.create_registry(name, username, password)["id"])
        except ProviderError:
            found = self._found_after(name)
            if found is None:
                raise
            return found

    def _found_after(self, name: str) -> str | None:
        try:
            return self._find(self._client.list_registries(), name)
        except ProviderError:
            return None

    @staticmethod
    def _find(listing: Listing, name: str) -> str | None:
        found = next((key for key, item in listing.items.items() if _name(item) == name), None)
        if found is None and not listing.complete:
            raise ProviderUnavailableError(f"listing registry credentials: {listing.problem}", code="list")
        return found


def _name(item: dict[str, object]) -> str:
    name = item.get("name")
    return name if isinstance(name, str) else ""
