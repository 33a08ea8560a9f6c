"""What becomes of every field of a Pod's spec: one declarative table (``docs/pods.md`` is made from it).

Fields: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/ . A field that
is not listed is refused: a release that does not know it cannot tell whether ignoring it is harmless.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Treatment(StrEnum):
    """How a field is met."""

    HONOURED = "Honoured"
    CHANGED = "Changed"
    IGNORED = "Ignored"
    REFUSED = "Refused"


@dataclass(frozen=True)
class Field:
    """One row. ``path`` is relative to ``spec``; ``[]`` stands for any element of a list.

    ``note`` is the word shown to the user. ``harmless`` values ask for nothing (mostly the API
    server's defaults): they are neither mentioned nor refused. ``quiet`` fields are ignored without a
    word, because every Pod has them.
    """

    path: str
    treatment: Treatment
    note: str
    harmless: tuple[object, ...] = ()
    quiet: bool = False


_H, _C, _I, _R = Treatment.HONOURED, Treatment.CHANGED, Treatment.IGNORED, Treatment.REFUSED
_BOX = "the instance is a machine of the provider, not a Node of this cluster"
_USER = "the image's own user applies"
_BOUND = "the provider's isolation applies"
_PROBE = "nobody runs probes; readiness follows the instance"

_POD: Final = (
    Field("activeDeadlineSeconds", _H, "counted from release; then Failed, DeadlineExceeded"),
    Field("affinity", _H, "checked against the virtual Node before anything is bought"),
    Field("automountServiceAccountToken", _I, "a token of the cluster is of no use outside it", quiet=True),
    Field("dnsConfig.nameservers", _R, "the provider's resolver is used"),
    Field("dnsConfig.options", _I, "the provider's resolver is used"),
    Field("dnsConfig.searches", _I, "cluster names do not resolve outside the cluster"),
    Field("dnsPolicy", _I, "the provider's resolver is used", ("ClusterFirst", "Default")),
    Field("enableServiceLinks", _I, "service variables point into the cluster and are left out", quiet=True),
    Field("ephemeralContainers", _I, "nobody runs them"),
    Field("evictionResponders", _I, "they act in the cluster; an eviction ends the instance like any delete"),
    Field("hostAliases", _R, "/etc/hosts of the instance cannot be written"),
    Field("hostIPC", _R, _BOX, (False,)),
    Field("hostNetwork", _R, _BOX, (False,)),
    Field("hostPID", _R, _BOX, (False,)),
    Field("hostUsers", _I, _BOUND, (True,)),
    Field("hostname", _I, "the instance has the provider's host name"),
    Field("hostnameOverride", _I, "the instance has the provider's host name"),
    Field("imagePullSecrets", _H, "matched to the image as the kubelet does; the credential is lent and retired"),
    Field("initContainers[]", _R, "one container per Pod; init containers and sidecars do not run"),
    Field("nodeName", _H, "a Pod that is bound already is never provisioned"),
    Field("nodeSelector", _H, "checked against the virtual Node before anything is bought"),
    Field("os.name", _R, "only linux runs", ("linux",)),
    Field("overhead", _R, "comes with a RuntimeClass, which does not apply outside the cluster"),
    Field("preemptionPolicy", _H, "the scheduler's; capacity of the virtual Node never is the limit"),
    Field("priority", _H, "the scheduler's; capacity of the virtual Node never is the limit"),
    Field("priorityClassName", _H, "the scheduler's; capacity of the virtual Node never is the limit"),
    Field("readinessGates", _H, "Ready is the AND of them and ContainersReady"),
    Field("resourceClaims", _R, "devices of the cluster cannot be attached"),
    Field("resources", _R, "say it on the container"),
    Field("restartPolicy", _C, "no restart in place: the owner replaces a Pod that ended"),
    Field("runtimeClassName", _R, "runtimes of the cluster do not apply", ("nvidia",)),
    Field("schedulerName", _H, "the named scheduler binds the Pod after release"),
    Field("schedulingGates", _H, "only our gate is removed; a Pod with others is not ours yet"),
    Field("schedulingGroup", _R, "gangs are not placed together"),
    Field("serviceAccount", _I, "its token is of no use outside the cluster", quiet=True),
    Field("serviceAccountName", _I, "its token is of no use outside the cluster", quiet=True),
    Field("setHostnameAsFQDN", _I, "the instance has the provider's host name", (False,)),
    Field("shareProcessNamespace", _I, "there is one container", (False,)),
    Field("subdomain", _I, "cluster names do not resolve outside the cluster"),
    Field(
        "terminationGracePeriodSeconds", _C, "kept where the provider can stop gently, else its own time", quiet=True
    ),
    Field("tolerations", _H, "kept; those of the virtual Node are added, injected time limits lifted"),
    Field("topologySpreadConstraints", _H, "checked against the virtual Node before anything is bought"),
    Field("volumes[]", _R, "nothing of the cluster can be mounted; write to the container's own disk"),
    Field("workloadRef", _R, "gangs are not placed together"),
)

_POD_SECURITY: Final = (
    Field("securityContext.appArmorProfile", _I, _BOUND),
    Field("securityContext.fsGroup", _I, "there are no volumes"),
    Field("securityContext.fsGroupChangePolicy", _I, "there are no volumes"),
    Field("securityContext.runAsGroup", _I, _USER),
    Field("securityContext.runAsNonRoot", _I, _USER, (False,)),
    Field("securityContext.runAsUser", _I, _USER),
    Field("securityContext.seLinuxChangePolicy", _I, "there are no volumes"),
    Field("securityContext.seLinuxOptions", _R, _BOX),
    Field("securityContext.seccompProfile", _I, _BOUND),
    Field("securityContext.supplementalGroups", _I, _USER),
    Field("securityContext.supplementalGroupsPolicy", _I, _USER),
    Field("securityContext.sysctls", _R, _BOX),
    Field("securityContext.windowsOptions", _R, "only linux runs"),
)

_CONTAINER: Final = (
    Field("containers[].args", _H, "replaces the image's CMD; $(VAR) expanded"),
    Field("containers[].command", _H, "replaces the image's ENTRYPOINT (and its CMD); $(VAR) expanded"),
    Field("containers[].env", _H, "resolved as by a kubelet; values from Secrets never shown"),
    Field("containers[].envFrom", _H, "resolved as by a kubelet, in order, with prefixes"),
    Field("containers[].image", _H, "sent as written: registry, port, tag and digest"),
    Field("containers[].imagePullPolicy", _R, "a fresh instance always pulls", ("Always", "IfNotPresent")),
    Field("containers[].lifecycle.postStart", _R, "nobody runs it"),
    Field("containers[].lifecycle.preStop", _I, "the provider stops the container its own way"),
    Field("containers[].lifecycle.stopSignal", _I, "the provider stops the container its own way"),
    Field("containers[].livenessProbe", _I, _PROBE),
    Field("containers[].name", _H, "shown in the Pod's status"),
    Field("containers[].ports[].containerPort", _H, "published only where the NodePool's ingress says so"),
    Field("containers[].ports[].hostIP", _R, _BOX),
    Field("containers[].ports[].hostPort", _R, _BOX, (0,)),
    Field("containers[].ports[].name", _I, "ports are known by number", quiet=True),
    Field("containers[].ports[].protocol", _R, "only TCP can be published", ("TCP",)),
    Field("containers[].readinessProbe", _I, _PROBE),
    Field("containers[].resizePolicy", _I, "a rented instance keeps its size", quiet=True),
    Field("containers[].resources.claims", _R, "devices of the cluster cannot be attached"),
    Field("containers[].resources.limits", _C, "where there is no request, the floor of what is rented"),
    Field("containers[].resources.requests", _H, "the floor of what is rented"),
    Field("containers[].restartPolicy", _R, "only the Pod's restartPolicy applies"),
    Field("containers[].restartPolicyRules", _R, "only the Pod's restartPolicy applies"),
    Field("containers[].startupProbe", _I, _PROBE),
    Field("containers[].stdin", _R, "nobody can attach", (False,)),
    Field("containers[].stdinOnce", _R, "nobody can attach", (False,)),
    Field("containers[].terminationMessagePath", _I, "files of the instance cannot be read", ("/dev/termination-log",)),
    Field("containers[].terminationMessagePolicy", _I, "files of the instance cannot be read", ("File",)),
    Field("containers[].tty", _R, "nobody can attach", (False,)),
    Field("containers[].volumeDevices", _R, "nothing of the cluster can be attached"),
    Field(
        "containers[].volumeMounts[]", _R, "nothing of the cluster can be mounted; write to the container's own disk"
    ),
    Field("containers[].workingDir", _H, "where the provider can set it; it refuses otherwise"),
)

_CONTAINER_SECURITY: Final = (
    Field("containers[].securityContext.allowPrivilegeEscalation", _I, _BOUND, (True,)),
    Field("containers[].securityContext.appArmorProfile", _I, _BOUND),
    Field("containers[].securityContext.capabilities.add", _R, _BOUND),
    Field("containers[].securityContext.capabilities.drop", _I, _BOUND),
    Field("containers[].securityContext.privileged", _R, _BOUND, (False,)),
    Field("containers[].securityContext.procMount", _R, _BOUND, ("Default",)),
    Field("containers[].securityContext.readOnlyRootFilesystem", _I, _BOUND, (False,)),
    Field("containers[].securityContext.runAsGroup", _I, _USER),
    Field("containers[].securityContext.runAsNonRoot", _I, _USER, (False,)),
    Field("containers[].securityContext.runAsUser", _I, _USER),
    Field("containers[].securityContext.seLinuxOptions", _R, _BOX),
    Field("containers[].securityContext.seccompProfile", _I, _BOUND),
    Field("containers[].securityContext.windowsOptions", _R, "only linux runs"),
)

FIELDS: Final = (*_POD, *_POD_SECURITY, *_CONTAINER, *_CONTAINER_SECURITY)
BY_PATH: Final = {field.path: field for field in FIELDS}
