"""Which kinds the emulator serves, and how a path names one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from local.kubernetes.errors import ApiError


@dataclass(frozen=True)
class Resource:
    """A served kind. ``strategic`` is False for custom resources, which answer 415 to such a patch."""

    plural: str
    kind: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    status: bool = False
    strategic: bool = True
    status_at_create: bool = False

    @property
    def api_version(self) -> str:
        """``v1`` or ``group/version``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The plural with its group, as error texts have it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
PODS = Resource("pods", "Pod", status=True)
NODES = Resource("nodes", "Node", namespaced=False, status=True, status_at_create=True)
NAMESPACES = Resource("namespaces", "Namespace", namespaced=False, status=True)
SECRETS = Resource("secrets", "Secret")
CONFIG_MAPS = Resource("configmaps", "ConfigMap")
EVENTS = Resource("events", "Event")
SERVICE_ACCOUNTS = Resource("serviceaccounts", "ServiceAccount")
LEASES = Resource("leases", "Lease", "coordination.k8s.io")
NODE_POOLS = Resource(
    "nodepools", "NodePool", "nebula.inftyai.com", "v1alpha1", namespaced=False, status=True, strategic=False
)
CLUSTER_ROLES = Resource("clusterroles", "ClusterRole", _RBAC, namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource("clusterrolebindings", "ClusterRoleBinding", _RBAC, namespaced=False)
ROLES = Resource("roles", "Role", _RBAC)
ROLE_BINDINGS = Resource("rolebindings", "RoleBinding", _RBAC)
MUTATING_POLICIES = (
    Resource("mutatingadmissionpolicies", "MutatingAdmissionPolicy", _ADMISSION, namespaced=False),
    Resource("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", _ADMISSION, namespaced=False),
)
VALIDATING_POLICIES = (
    Resource("validatingadmissionpolicies", "ValidatingAdmissionPolicy", _ADMISSION, namespaced=False),
    Resource("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", _ADMISSION, namespaced=False),
)
CUSTOM_DEFINITIONS = Resource(
    "customresourcedefinitions", "CustomResourceDefinition", "apiextensions.k8s.io", namespaced=False, status=True
)
RESOURCES: tuple[Resource, ...] = (
    PODS,
    NODES,
    NAMESPACES,
    SECRETS,
    CONFIG_MAPS,
    EVENTS,
    SERVICE_ACCOUNTS,
    LEASES,
    NODE_POOLS,
    CLUSTER_ROLES,
    CLUSTER_ROLE_BINDINGS,
    ROLES,
    ROLE_BINDINGS,
    *MUTATING_POLICIES,
    *VALIDATING_POLICIES,
    CUSTOM_DEFINITIONS,
)
BY_KIND = {(resource.api_version, resource.kind): resource for resource in RESOURCES}
_BY_PATH = {(resource.group, resource.version, resource.plural): resource for resource in RESOURCES}


class Route(NamedTuple):
    """What a path names. ``namespace`` is empty for cluster-scoped kinds and for lists over all namespaces."""

    resource: Resource
    namespace: str
    name: str
    subresource: str


def unknown_path() -> ApiError:
    """404 for a path that names nothing; real servers say so in plain text, without an object."""
    return ApiError(404, "404 page not found", reason="UnknownPath")


def parse(path: str) -> Route:
    """Read a path; ``ApiError`` 404 with reason ``UnknownPath`` when it names no served kind."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise unknown_path()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    resource = _BY_PATH.get((group, version, rest[0]))
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        raise unknown_path()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if (name and resource.namespaced and not namespace) or (subresource and not _serves(resource, subresource)):
        raise unknown_path()
    return Route(resource, namespace, name, subresource)


def _serves(resource: Resource, subresource: str) -> bool:
    return (subresource == "status" and resource.status) or (subresource == "binding" and resource is PODS)
