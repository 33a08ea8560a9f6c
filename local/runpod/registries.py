"""Registry credentials: write-only, unique by name (v1 documents that, v2 does not say), kept while in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from local.runpod.wire import ProblemError


class Registries:
    """Names, users and passwords by id. The API shows only id and name."""

    def __init__(self, in_use: Callable[[str], bool]) -> None:
        self._in_use = in_use
        self._rows: dict[str, dict[str, str]] = {}
        self._made = 0

    def create(self, content: dict[str, Any]) -> dict[str, str]:
        """201, or the refusal of a name that is taken (its real text is unknown)."""
        if any(row["name"] == content["name"] for row in self._rows.values()):
            raise ProblemError(400, "a registry credential with this name already exists")
        self._made += 1
        row = {"id": f"reg{self._made:010d}", **content}
        self._rows[row["id"]] = row
        return self.show(row["id"])

    def show(self, registry_id: str) -> dict[str, str]:
        """Id and name, else 404."""
        row = self._rows.get(registry_id)
        if row is None:
            raise ProblemError(404, "resource not found")
        return {"id": row["id"], "name": row["name"]}

    def delete(self, registry_id: str) -> None:
        """Delete, but for one that a pod uses."""
        self.show(registry_id)
        if self._in_use(registry_id):
            raise ProblemError(400, "Registry credential is in use by a pod and cannot be deleted")
        del self._rows[registry_id]

    def list(self) -> list[dict[str, str]]:
        """All of them."""
        return [self.show(registry_id) for registry_id in self._rows]

    def login(self, registry_id: str) -> tuple[str, str] | None:
        """User and password, for the pull."""
        row = self._rows.get(registry_id)
        return (row["username"], row["password"]) if row else None
