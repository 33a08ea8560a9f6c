"""RBAC from the objects in the store: what a user's bindings allow, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from local.kubernetes.errors import ApiError, Object
from local.kubernetes.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES, Route
from local.kubernetes.storage import Store

MASTERS = "system:masters"


class User(NamedTuple):
    """Who a bearer token stands for."""

    name: str
    groups: tuple[str, ...] = ()


class Access:
    """Decides by the roles and bindings that the store holds at that moment."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def require(self, user: User, verb: str, route: Route) -> None:
        """403 unless a rule allows the call; ``system:masters`` may do everything."""
        if MASTERS in user.groups or any(_allows(rule, verb, route) for rule in self._rules(user, route.namespace)):
            return
        resource = route.resource
        where = f'in the namespace "{route.namespace}"' if route.namespace else "at the cluster scope"
        message = (
            f'{resource.qualified} "{route.name}" is forbidden: User "{user.name}" cannot {verb} resource '
            f'"{_name(route)}" in API group "{resource.group}" {where}'
        )
        raise ApiError(403, message, details={"name": route.name, "kind": resource.plural})

    def _rules(self, user: User, namespace: str) -> Iterator[Object]:
        with self._store.lock:
            bindings = self._store.records(CLUSTER_ROLE_BINDINGS)
            if namespace:
                bindings = [*bindings, *self._store.records(ROLE_BINDINGS, namespace)]
        for record in bindings:
            if any(_is(subject, user) for subject in record.object.get("subjects") or []):
                yield from self._role(record.object["roleRef"], namespace)

    def _role(self, reference: Object, namespace: str) -> list[Object]:
        if reference["kind"] == "ClusterRole":
            found = self._store.get(CLUSTER_ROLES, ("", reference["name"]))
        else:
            found = self._store.get(ROLES, (namespace, reference["name"]))
        return [] if found is None else found.object.get("rules") or []


def _is(subject: Object, user: User) -> bool:
    if subject["kind"] == "Group":
        return subject["name"] in user.groups
    if subject["kind"] == "ServiceAccount":
        return user.name == f"system:serviceaccount:{subject.get('namespace')}:{subject['name']}"
    return bool(subject["name"] == user.name)


def _name(route: Route) -> str:
    return route.resource.plural + (f"/{route.subresource}" if route.subresource else "")


def _allows(rule: Object, verb: str, route: Route) -> bool:
    names = rule.get("resourceNames")
    # A create carries no name in its path, so resourceNames never admit one.
    named = not names or (bool(route.name) and route.name in names)
    return (
        named
        and _matches(rule.get("verbs"), verb)
        and _matches(rule.get("apiGroups"), route.resource.group)
        and _matches(rule.get("resources"), _name(route))
    )


def _matches(listed: list[str] | None, value: str) -> bool:
    return listed is not None and (value in listed or "*" in listed)
