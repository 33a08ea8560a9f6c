"""What admission puts into a Pod and the user never wrote: taken out before the Pod is translated.

The service account token (https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/)
is in almost every Pod and of no use outside the cluster: dropped without a word. The credentials of
EKS (IRSA, https://docs.aws.amazon.com/eks/latest/userguide/pod-configuration.html, and Pod Identity)
point at files that will not exist: dropped with a word. Both are told by mount path and sources,
never by name alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nebula.kubernetes.api import Object

_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path
_IRSA_PATH: Final = "/var/run/secrets/eks.amazonaws.com/serviceaccount"
_POD_IDENTITY_PATH: Final = "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount"
_TOKEN_SOURCES: Final = frozenset({"serviceAccountToken", "configMap", "downwardAPI"})
#: Variable that names the token file → what is injected together with it.
_FAMILIES: Final = {
    "AWS_WEB_IDENTITY_TOKEN_FILE": (
        _IRSA_PATH,
        "IRSA",
        frozenset({"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"}),
    ),
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": (
        _POD_IDENTITY_PATH,
        "Pod Identity",
        frozenset({"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"}),
    ),
}


def without_injected(spec: Mapping[str, Any]) -> tuple[Object, tuple[str, ...]]:
    """The spec without injected volumes, mounts and variables, and one word per dropped credential."""
    containers = spec.get("containers") or []
    mounts = [mount for container in containers for mount in container.get("volumeMounts") or []]
    volumes = spec.get("volumes") or []
    dropped = {str(volume.get("name")) for volume in volumes if _is_token(volume, mounts)}
    cleaned: Object = {**spec, "volumes": [volume for volume in volumes if volume.get("name") not in dropped]}
    words: list[str] = []
    cleaned["containers"] = [_clean_container(container, dropped, words) for container in containers]
    return cleaned, tuple(dict.fromkeys(words))


def _is_token(volume: Mapping[str, Any], mounts: list[Mapping[str, Any]]) -> bool:
    """A projected volume of a token that is mounted at the token's own path and nowhere else."""
    projected = volume.get("projected")
    sources = (projected or {}).get("sources") if isinstance(projected, Mapping) else None
    if not isinstance(sources, list) or not sources:
        return False
    kinds = {kind for source in sources if isinstance(source, Mapping) for kind in source}
    paths = {m.get("mountPath") for m in mounts if m.get("name") == volume.get("name")}
    if "serviceAccountToken" not in kinds or len(paths) > 1:
        return False
    if paths in ({_IRSA_PATH}, {_POD_IDENTITY_PATH}):
        return kinds == {"serviceAccountToken"}
    ours = not paths or paths == {_TOKEN_PATH}
    return ours and kinds <= _TOKEN_SOURCES and all(_harmless_source(source) for source in sources)


def _harmless_source(source: Mapping[str, Any]) -> bool:
    config_map = source.get("configMap")
    return not isinstance(config_map, Mapping) or config_map.get("name") == "kube-root-ca.crt"


def _clean_container(container: Mapping[str, Any], dropped: set[str], words: list[str]) -> Object:
    mounts = [m for m in container.get("volumeMounts") or [] if m.get("name") not in dropped]
    env = container.get("env") or []
    values = {e.get("name"): str(e.get("value") or "") for e in env}
    unset: set[str] = set()
    for variable, (path, word, family) in _FAMILIES.items():
        if values.get(variable, "").startswith(f"{path}/"):
            unset |= family
            words.append(f"{word} credentials (their token file does not exist outside the cluster)")
    return {**container, "volumeMounts": mounts, "env": [e for e in env if e.get("name") not in unset]}
