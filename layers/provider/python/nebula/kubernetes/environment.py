"""A container's environment, command and arguments as the kubelet resolves them.

Rules: https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
and the kubelet's ``makeEnvironmentVariables``. Values come from Secrets: none of them may appear in
an error.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING
from typing import Any, Final

from pydantic import SecretStr

from nebula.kubernetes import names
from nebula.kubernetes.api import ForbiddenError, InvalidError, KubernetesApi, Object
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.quantity import InvalidQuantityError, parse_quantity
from nebula.kubernetes.workload_errors import InvalidPodError, WaitingForReferenceError

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")
#: Known before the Pod is bound. podIP and hostIP never are.
_STATIC_FIELDS: Final = ("metadata.name", "metadata.namespace", "metadata.uid", "spec.serviceAccountName")
#: Characters of environment and arguments together: more than Linux gives to a process (execve(2), 2 MiB by default).
MOST_TEXT: Final = 2 * 2**20
#: Secrets and ConfigMaps that are read for one Pod: each is a call.
MOST_OBJECTS: Final = 100


def expand(text: str, values: Mapping[str, str], most: int = MOST_TEXT) -> str:
    """Expand ``$(NAME)`` once. ``$$`` is ``$``; an unknown name and an unclosed ``$(`` stay as they are.

    InvalidPodError before more than ``most`` characters are put together: thirty variables that each hold the
    one before ten times would fill any memory.
    """
    left = most - len(text)

    def replaced(match: re.Match[str]) -> str:
        nonlocal left
        name = match[1]
        found = "$" if name is None else values.get(name, match[0])
        left -= len(found) - len(match[0])
        if left < 0:
            raise _too_large()
        return found

    return _REFERENCE.sub(replaced, text)


def _too_large() -> InvalidPodError:
    text = f"environment, command and args come to more than {MOST_TEXT} characters, which no process can be given"
    return InvalidPodError("EnvironmentTooLarge", text)


class Environment:
    """Resolves one container's environment. One instance per translation: Secrets are read once."""

    def __init__(self, pod: Pod, container: Object, api: KubernetesApi, node_name: str | None = None) -> None:
        self._pod = pod
        self._container = container
        self._node_name = node_name
        self._readers: dict[str, Callable[[str, str], Object | None]] = {
            "Secret": api.get_secret,
            "ConfigMap": api.get_config_map,
        }
        self._objects: dict[tuple[str, str], Object | None] = {}
        self._values: dict[str, str] = {}
        self._left = MOST_TEXT

    def resolve(self) -> dict[str, SecretStr]:
        """``envFrom`` in order with prefixes, later ones winning; then ``env`` in order, overriding.

        Raises InvalidPodError for what can never be resolved, WaitingForReferenceError for a Secret,
        ConfigMap or key that is not there (yet); both name it and show no value.
        """
        self._values = {}
        for source in self._container.get("envFrom") or []:
            self._add_all(source)
        for entry in self._container.get("env") or []:
            self._add(entry)
        return {name: SecretStr(value) for name, value in self._values.items()}

    def expanded(self, texts: list[str] | None) -> tuple[str, ...] | None:
        """Command or arguments with ``$(NAME)`` expanded against the resolved environment."""
        return None if texts is None else tuple(self._kept(expand(text, self._values, self._left)) for text in texts)

    def _add_all(self, source: Mapping[str, Any]) -> None:
        prefix = str(source.get("prefix") or "")
        for kind, key in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
            reference = source.get(key)
            if not isinstance(reference, Mapping):
                continue
            found = self._object(kind, reference)
            for name, value in sorted(((found or {}).get("data") or {}).items()):
                self._set(prefix + name, self._text(kind, reference, name, value))

    def _add(self, entry: Mapping[str, Any]) -> None:
        name, value, source = str(entry.get("name") or ""), entry.get("value"), entry.get("valueFrom")
        if value or not source:
            self._set(name, expand(str(value or ""), self._values, self._left))
            return
        if not isinstance(source, Mapping):
            raise InvalidPodError("InvalidEnvironment", f"env {name}: valueFrom is not an object")
        resolved = self._from(name, source)
        if resolved is not None:
            self._set(name, resolved)

    def _set(self, name: str, value: str) -> None:
        if name.startswith(names.RESERVED_ENV_PREFIX):
            raise InvalidPodError("ReservedEnvironment", f"environment name {name} is reserved")
        if not name or "=" in name or not name.isprintable() or not name.isascii():
            raise InvalidPodError("InvalidEnvironment", f"environment name {name!r} is not valid")
        if "\0" in value:
            raise InvalidPodError("InvalidEnvironment", f"the value of {name} holds a NUL character")
        self._values[name] = self._kept(value)

    def _kept(self, text: str) -> str:
        self._left -= len(text)
        if self._left < 0:
            raise _too_large()
        return text

    def _from(self, name: str, source: Mapping[str, Any]) -> str | None:
        for kind, key in (("Secret", "secretKeyRef"), ("ConfigMap", "configMapKeyRef")):
            if isinstance(source.get(key), Mapping):
                return self._from_key(kind, source[key])
        if isinstance(source.get("fieldRef"), Mapping):
            return self._from_field(name, str(source["fieldRef"].get("fieldPath")))
        if isinstance(source.get("resourceFieldRef"), Mapping):
            return self._from_resource(name, source["resourceFieldRef"])
        raise InvalidPodError("UnsupportedEnvironment", f"env {name}: valueFrom {', '.join(sorted(source))}")

    def _from_key(self, kind: str, reference: Mapping[str, Any]) -> str | None:
        found = self._object(kind, reference)
        if found is None:
            return None
        key = str(reference.get("key"))
        data = found.get("data") or {}
        if key in data:
            return self._text(kind, reference, key, data[key])
        if reference.get("optional"):
            return None
        raise WaitingForReferenceError(f"{kind} {reference.get('name')} has no key {key}")

    def _object(self, kind: str, reference: Mapping[str, Any]) -> Object | None:
        """The object in the Pod's own namespace; None when it is missing and optional."""
        name = str(reference.get("name") or "")
        if (kind, name) not in self._objects:
            if len(self._objects) >= MOST_OBJECTS:
                text = f"the environment refers to more than {MOST_OBJECTS} Secrets and ConfigMaps"
                raise InvalidPodError("TooManyReferences", text)
            self._objects[kind, name] = self._read(kind, name)
        found = self._objects[kind, name]
        if found is None and not reference.get("optional"):
            shown = name or "without a name"
            raise WaitingForReferenceError(f"{kind} {shown} does not exist in namespace {self._pod.namespace}")
        return found

    def _read(self, kind: str, name: str) -> Object | None:
        try:
            return self._readers[kind](self._pod.namespace, name)
        except ForbiddenError:
            text = f"{kind} {name}: namespace {self._pod.namespace} grants no access"
            raise WaitingForReferenceError(text) from None
        except InvalidError:
            # API servers take any text for a reference. What is no name names nothing that exists.
            return None

    def _text(self, kind: str, reference: Mapping[str, Any], key: str, value: object) -> str:
        if kind == "ConfigMap":
            return str(value)
        try:
            return base64.b64decode(str(value), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            text = f"Secret {reference.get('name')}, key {key}: not UTF-8 text"
            raise InvalidPodError("UndecodableSecret", text) from None

    def _from_field(self, name: str, path: str) -> str:
        pod = self._pod
        fixed = dict(
            zip(
                _STATIC_FIELDS,
                (pod.name, pod.namespace, pod.uid, str(pod.spec.get("serviceAccountName") or "default")),
                strict=True,
            )
        )
        if path in fixed:
            return fixed[path]
        if path == "spec.nodeName" and self._node_name is not None:
            return self._node_name
        written_later = any(f"'{annotation}'" in path for annotation in names.WRITTEN_AT_RELEASE)
        found = None if written_later else pod.metadata_field(path)
        if found is None:
            raise InvalidPodError(
                "UnsupportedEnvironment", f"env {name}: fieldRef {path} is not known before the Pod runs"
            )
        return found

    def _from_resource(self, name: str, reference: Mapping[str, Any]) -> str:
        """An explicit limit or request divided by the divisor, rounded up."""
        path = str(reference.get("resource"))
        owner = reference.get("containerName") or self._container.get("name")
        section, _, resource = path.partition(".")
        container = next((c for c in self._pod.containers if c.get("name") == owner), None)
        held = ((container or {}).get("resources") or {}).get(section) or {}
        if section not in ("limits", "requests") or resource not in held:
            text = f"env {name}: resourceFieldRef {path} of container {owner} is not set explicitly"
            raise InvalidPodError("UnsupportedEnvironment", text)
        try:
            value, divisor = parse_quantity(held[resource]), parse_quantity(reference.get("divisor") or "1")
        except InvalidQuantityError as error:
            raise InvalidPodError("InvalidQuantity", f"env {name}: {error}") from None
        if divisor == 0:
            divisor = parse_quantity("1")
        return str(int((value / divisor).to_integral_value(ROUND_CEILING)))
