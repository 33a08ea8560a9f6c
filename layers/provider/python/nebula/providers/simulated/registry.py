"""The simulated provider's registry credentials. Keeps names and ids, never a user or a password."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock

from pydantic import SecretStr

from nebula.providers.base import RegistryObject
from nebula.providers.errors import CredentialInUseError
from nebula.providers.simulated.script import Call, Script


class SimulatedRegistry:
    """See ``RegistryCredentials``. ``in_use`` tells whether a machine that lives carries an id."""

    def __init__(self, script: Script, in_use: Callable[[str], bool]) -> None:
        self._script = script
        self._in_use = in_use
        self._lock = RLock()
        self._objects: dict[str, RegistryObject] = {}
        self._made = 0

    def ensure_registry_credential(self, name: str, username: SecretStr, password: SecretStr) -> str:
        """See ``RegistryCredentials``."""
        if not username.get_secret_value() or not password.get_secret_value():
            raise ValueError("user and password must not be empty")
        with self._script.call(Call.REGISTRY_ENSURE, name), self._lock:
            found = next((o.id for o in self._objects.values() if o.name == name), None)
            return found or self.add(name)

    def forget_registry_credential(self, name: str) -> None:
        """See ``RegistryCredentials``; nothing is cached here."""

    def list_registry_credentials(self) -> tuple[RegistryObject, ...]:
        """See ``RegistryCredentials``."""
        with self._script.call(Call.REGISTRY_LIST), self._lock:
            return tuple(self._objects.values())

    def delete_registry_credential(self, credential_id: str) -> None:
        """See ``RegistryCredentials``."""
        with self._script.call(Call.REGISTRY_DELETE, credential_id):
            if self._in_use(credential_id):
                raise CredentialInUseError(f"registry credential {credential_id} is in use", code="in_use")
            with self._lock:
                self._objects.pop(credential_id, None)

    def has_registry_credential(self, credential_id: str) -> bool:
        """Whether an id exists now."""
        with self._lock:
            return credential_id in self._objects

    def add(self, name: str) -> str:
        """Put an object there without a call (a foreign one, or one made by hand); returns its id."""
        with self._lock:
            self._made += 1
            made = RegistryObject(id=f"reg-{self._made:04d}", name=name)
            self._objects[made.id] = made
            return made.id

    def remove(self, credential_id: str) -> None:
        """Take an object away without a call, as by hand in the provider's console."""
        with self._lock:
            self._objects.pop(credential_id, None)
