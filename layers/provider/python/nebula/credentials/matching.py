"""Which registry key pulls which image: the kubelet's rules, on text alone.

Follows ``pkg/credentialprovider/keyring.go`` of Kubernetes: keys are normalised, tried in reverse byte
order, and match by equal port, glob per host part and plain path prefix.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from functools import lru_cache

DOCKER_HUB = "docker.io"
#: What ``https://index.docker.io/v1/``, the key that ``docker login`` writes, normalises to.
DOCKER_HUB_KEY = "index.docker.io"
#: A name that people take for Docker Hub's, but that no kubelet matches to its images.
DOCKER_HUB_MISTAKE = "registry-1.docker.io"

_SCHEME = re.compile(r"^https?://")
_ECR = re.compile(
    r"^[^.]+\.dkr[.-]ecr(-fips)?\.[^.]+\.(amazonaws\.(com|com\.cn|eu)|on\.(aws|amazonwebservices\.com\.cn)"
    r"|c2s\.ic\.gov|sc2s\.sgov\.gov|csp\.hci\.ic\.gov|cloud\.adc-e\.uk)$",
    re.IGNORECASE,
)
_PUBLIC_ECR = "public.ecr.aws"


def normalise_key(text: str) -> str:
    """A registry key as written in a Secret → host, port and path.

    Scheme, user information, query and a leading ``/v1`` or ``/v2`` path part are dropped; a bare
    ``/`` is no path. Any other path stays, a trailing slash included.
    """
    rest = _SCHEME.sub("", text.strip())
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    authority, slash, path = rest.partition("/")
    path = slash + path
    if path.startswith(("/v1/", "/v2/")):
        path = path[3:]
    return authority.rpartition("@")[2] + ("" if path == "/" else path)


def normalise_image(image: str) -> str:
    """An image reference without tag and digest, with its registry: ``nginx`` → ``docker.io/library/nginx``."""
    name = image.strip().partition("@")[0]
    head, colon, tail = name.rpartition(":")
    if colon and "/" not in tail:
        name = head
    first, slash, rest = name.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost" or first.lower() != first)
    if not is_host:
        first, rest = DOCKER_HUB, name
    if first == DOCKER_HUB_KEY:
        first = DOCKER_HUB
    if first == DOCKER_HUB and "/" not in rest:
        rest = f"library/{rest}"
    return f"{first}/{rest}"


def registry_of(image: str) -> str:
    """Host and port of an image's registry."""
    return normalise_image(image).partition("/")[0]


def key_matches(key: str, image: str) -> bool:
    """Whether a normalised key matches a normalised image by the kubelet's URL rule."""
    key_host, _, key_path = key.partition("/")
    image_host, _, image_path = image.partition("/")
    key_name, key_port = _split_port(key_host)
    image_name, image_port = _split_port(image_host)
    if not key_name or key_port != image_port or not image_path.startswith(key_path):
        return False
    globs, parts = key_name.split("."), image_name.split(".")
    return len(globs) == len(parts) and all(
        _glob(glob).fullmatch(part) is not None for glob, part in zip(globs, parts, strict=True)
    )


def matching_keys(keys: Iterable[str], image: str) -> tuple[str, ...]:
    """The normalised keys that match an image reference, in the order in which a kubelet tries them.

    Longer paths of one host come first and ``*`` hosts last. Docker Hub's own key serves its images
    only where nothing else matched.
    """
    target = normalise_image(image)
    ordered = sorted(set(keys), key=str.encode, reverse=True)
    found = tuple(key for key in ordered if key_matches(key, target))
    if not found and target.startswith(f"{DOCKER_HUB}/") and DOCKER_HUB_KEY in ordered:
        return (DOCKER_HUB_KEY,)
    return found


def canonical_registry(key: str) -> str:
    """The registry's one name for fingerprint and display: Docker Hub's aliases become ``docker.io``."""
    host, slash, path = key.partition("/")
    return (DOCKER_HUB if host == DOCKER_HUB_KEY else host) + slash + path


def is_ecr(host: str) -> bool:
    """Whether a host is a private Amazon ECR registry: never readable anonymously, passwords live 12 h.

    Source: the kubelet's ECR credential provider configuration and the Amazon ECR user guide.
    """
    return _ECR.match(_split_port(host)[0]) is not None


def ends_in_hours(host: str) -> bool:
    """Whether passwords of user ``AWS`` for a host end 12 h after they were given out.

    The public gallery's do as well (Amazon ECR Public user guide, "Registry authentication"), though it needs none.
    """
    return is_ecr(host) or _split_port(host)[0].lower() == _PUBLIC_ECR


def _split_port(host: str) -> tuple[str, str]:
    if host.startswith("["):
        name, _, rest = host.partition("]")
        return f"{name}]", rest.removeprefix(":")
    name, _, port = host.partition(":")
    return name, port


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    """``*`` and ``?`` as in Go's ``filepath.Match``, everything else literally.

    ``fnmatch`` writes what never tries a star twice: with plain ``.*`` a dozen of them would take hours.
    """
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]")))
