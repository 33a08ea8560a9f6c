"""Which credential pulls a Pod's image: its ``imagePullSecrets``, read and matched as a kubelet does.

Secrets are read only from the Pod's own namespace. Admission has already copied the service account's
``imagePullSecrets`` into the Pod, so no ServiceAccount is read.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from pydantic import SecretStr

from nebula.clock import parse_time
from nebula.credentials.docker_config import (
    BrokenDockerConfigError,
    DockerConfig,
    DockerEntry,
    parse_docker_config,
)
from nebula.credentials.fingerprint import fingerprint
from nebula.credentials.matching import (
    DOCKER_HUB,
    DOCKER_HUB_MISTAKE,
    canonical_registry,
    ends_in_hours,
    is_ecr,
    matching_keys,
    registry_of,
)
from nebula.domain.workload import PullCredential
from nebula.kubernetes.api import ForbiddenError, InvalidError, KubernetesApi, Object

#: An Amazon ECR password is good for 12 hours (Amazon ECR user guide, "Private registry authentication").
ECR_LIFETIME = timedelta(hours=12)
_ECR_USER = "AWS"
#: Secrets that are read for one Pod: each is a call, and a function has a minute and a half for all that it does.
MOST_SECRETS = 50
#: Secret type → (key of its data, whether the format is the legacy one).
_FORMATS = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson", False),
    "kubernetes.io/dockercfg": (".dockercfg", True),
}


class UnsupportedPullSecretError(Exception):
    """What matches the image cannot be lent, or cannot be read. The Pod stays gated; nothing is pulled
    anonymously in its place. Mending the Secret, or access to it, heals this; the message names both.
    """


class PodReference(Protocol):
    """The two attributes of a Pod that are needed here."""

    @property
    def namespace(self) -> str:
        """The Pod's namespace."""
        ...

    @property
    def object(self) -> Object:
        """The Pod as the API gives it."""
        ...


@dataclass(frozen=True)
class PullLookup:
    """The credential for an image (None: anonymous pull), the next ones a kubelet would try, and warnings."""

    credential: PullCredential | None
    warnings: tuple[str, ...] = ()
    alternatives: tuple[PullCredential, ...] = ()


@dataclass
class _Keyring:
    """Every readable entry of a Pod's Secrets by normalised key, in the order of the Pod."""

    entries: dict[str, list[tuple[DockerEntry, str, datetime | None]]] = field(default_factory=dict)
    helpers: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    forbidden: list[str] = field(default_factory=list)


def find_pull_credential(api: KubernetesApi, pod: PodReference, image: str) -> PullLookup:
    """The credential that pulls ``image`` for this Pod.

    A missing Secret is a warning and no more. Raises UnsupportedPullSecretError when a Secret is broken,
    when access to one that may match is forbidden, or when what matches is a token, a helper or a cloud
    role; ``ClusterUnavailableError`` when nobody answers.
    """
    keyring = _Keyring()
    named = tuple(secret_names(pod.object))
    if len(named) > MOST_SECRETS:
        raise UnsupportedPullSecretError(f"spec.imagePullSecrets names {len(named)} Secrets, more than {MOST_SECRETS}")
    for name in named:
        _add(keyring, api, pod.namespace, name)
    keys = matching_keys(keyring.entries, image)
    found = [item for key in keys for item in keyring.entries[key]]
    if not found:
        _refuse_unmatched(keyring, image)
        return PullLookup(None, tuple(keyring.warnings))
    usable = [_credential(entry, source, written, image) for entry, source, written in found if entry.username]
    if not usable:
        entry, source, _ = found[0]
        raise UnsupportedPullSecretError(f"Secret {source}: the entry for {entry.key} {entry.unusable}")
    first = usable[0]
    if first.expires_at is not None:
        keyring.warnings.append(
            f"the password of {first.source} expires by {first.expires_at:%Y-%m-%dT%H:%M:%SZ}:"
            " a restart after that cannot pull the image again"
        )
    return PullLookup(first, tuple(keyring.warnings), tuple(usable[1:]))


def fingerprints_in(secret: Object, key: SecretStr) -> frozenset[str]:
    """The fingerprints of every credential that a Secret yields; none when it is broken or of another type."""
    try:
        config = _config(secret)
    except BrokenDockerConfigError:
        return frozenset()
    if config is None:
        return frozenset()
    return frozenset(
        fingerprint(key, canonical_registry(entry.key), entry.username, entry.password)
        for entry in config.entries
        if entry.username is not None and entry.password is not None
    )


def secret_names(pod: Object) -> Iterator[str]:
    """Names of a Pod's ``imagePullSecrets``, each once, in the Pod's order."""
    listed = (pod.get("spec") or {}).get("imagePullSecrets") or []
    names = (item.get("name") for item in listed if isinstance(item, dict))
    return iter(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def _add(keyring: _Keyring, api: KubernetesApi, namespace: str, name: str) -> None:
    label = f"{namespace}/{name}"
    try:
        secret = api.get_secret(namespace, name)
    except ForbiddenError:
        keyring.forbidden.append(label)
        keyring.warnings.append(f"Secret {label}: the control plane may not read it; bind its role in {namespace}")
        return
    except InvalidError:
        # API servers take any text for a reference. What is no name names nothing that exists.
        secret = None
    if secret is None:
        keyring.warnings.append(f"Secret {label} does not exist; the pull goes on without it")
        return
    try:
        config = _config(secret)
    except BrokenDockerConfigError as error:
        raise UnsupportedPullSecretError(f"Secret {label} is broken: {error}") from None
    if config is None:
        keyring.warnings.append(f"Secret {label} is not of an image pull type; the pull goes on without it")
        return
    source, written = f"{api.name}/{label}", _written_at(secret)
    for entry in config.entries:
        keyring.entries.setdefault(entry.key, []).append((entry, source, written))
        if entry.key.partition("/")[0] == DOCKER_HUB_MISTAKE:
            keyring.warnings.append(
                f"Secret {label}: {DOCKER_HUB_MISTAKE} matches no image of Docker Hub; write {DOCKER_HUB}"
            )
    for registry, helper in config.helpers.items():
        keyring.helpers.setdefault(registry, f"Secret {label} leaves {registry} to the credential helper {helper}")


def _config(secret: Object) -> DockerConfig | None:
    """The Docker configuration of a Secret; None when its type or data holds none."""
    format_ = _FORMATS.get(str(secret.get("type", "")))
    data: Any = secret.get("data") or {}
    if format_ is None or not isinstance(data, dict) or not data.get(format_[0]):
        return None
    text: bytes | None = None
    with contextlib.suppress(binascii.Error, ValueError, TypeError):
        text = base64.b64decode(data[format_[0]], validate=True)
    if text is None:
        raise BrokenDockerConfigError(f"{format_[0]} is not base64")
    return parse_docker_config(text, legacy=format_[1])


def _refuse_unmatched(keyring: _Keyring, image: str) -> None:
    """Nothing matched: an anonymous pull, unless something says that it would be a wrong one."""
    helper = next(iter(matching_keys(keyring.helpers, image)), None)
    if helper is not None:
        raise UnsupportedPullSecretError(f"{keyring.helpers[helper]}, which does not exist at a provider")
    if keyring.forbidden:
        raise UnsupportedPullSecretError(
            f"Secret {', '.join(keyring.forbidden)} may hold the image's credential but the control plane may not"
            " read it; bind its role in the namespace"
        )
    if is_ecr(registry_of(image)):
        raise UnsupportedPullSecretError(
            f"{registry_of(image)} is pulled by a node's cloud role (ECR), which does not exist at a provider;"
            " give the Pod an imagePullSecret"
        )


def _credential(entry: DockerEntry, source: str, written: datetime | None, image: str) -> PullCredential:
    if entry.username is None or entry.password is None:
        raise ValueError("an entry without user and password cannot be lent")
    ends = entry.username.get_secret_value() == _ECR_USER and ends_in_hours(registry_of(image))
    return PullCredential(
        registry=canonical_registry(entry.key),
        username=entry.username,
        password=entry.password,
        source=source,
        expires_at=_expiry(written) if ends and written is not None else None,
    )


def _expiry(written: datetime) -> datetime | None:
    """None for a time that its owner put at the end of all times."""
    try:
        return written + ECR_LIFETIME
    except OverflowError:
        return None


def _written_at(secret: Object) -> datetime | None:
    """When the Secret's data was last written, as well as its metadata tells.

    The newest managed-fields entry that owns data, else the creation. The password was issued before
    that, so an expiry computed from it is never too early.
    """
    metadata = secret.get("metadata") or {}
    owners = [item for item in metadata.get("managedFields") or [] if isinstance(item, dict)]
    times = [parse_time(item.get("time")) for item in owners if "f:data" in (item.get("fieldsV1") or {})]
    known = [time for time in times if time is not None]
    return max(known) if known else parse_time(metadata.get("creationTimestamp"))
