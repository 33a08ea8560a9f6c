"""What an API server fills into a new Pod: defaulting and the admission plugins that are on by default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from local.kubernetes.errors import Object

GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
_SERVICE_ACCOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True)
class Admission:
    """Which plugins act. ``gate`` stands for our MutatingAdmissionPolicy; ``service_account`` adds the token volume."""

    default_tolerations: bool = True
    service_account: bool = False
    gate: str = ""
    gate_label: str = "nebula.inftyai.com/enabled"


def fill(pod: Object, admission: Admission, suffix: str) -> None:
    """Defaults and admission of a Pod that is being created; ``pod`` is changed and owns all its parts."""
    spec = pod["spec"]
    for key, value in (
        ("restartPolicy", "Always"),
        ("terminationGracePeriodSeconds", 30),
        ("dnsPolicy", "ClusterFirst"),
        ("schedulerName", "default-scheduler"),
        ("serviceAccountName", "default"),
        ("enableServiceLinks", True),
        ("preemptionPolicy", "PreemptLowerPriority"),
        ("priority", 0),
    ):
        spec.setdefault(key, value)
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    spec.setdefault("securityContext", {})
    for container in [*spec["containers"], *(spec.get("initContainers") or [])]:
        _fill_container(container)
    if admission.gate and (pod["metadata"].get("labels") or {}).get(admission.gate_label) == "true":
        gates = spec.setdefault("schedulingGates", [])
        if not any(gate.get("name") == admission.gate for gate in gates):
            gates.append({"name": admission.gate})
    refill(spec, admission)
    if admission.service_account and spec.get("automountServiceAccountToken") is not False:
        _mount_token(spec, suffix)
    pod["status"] = {"phase": "Pending", "qosClass": _qos_class(spec)}
    if spec.get("schedulingGates"):
        pod["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": None,
                "reason": "SchedulingGated",
                "message": GATED_MESSAGE,
            }
        ]


def refill(spec: Object, admission: Admission) -> None:
    """What admission does at every write of a Pod, not only at its creation; ``spec`` is changed."""
    if admission.default_tolerations:
        _fill_tolerations(spec)


def _fill_container(container: Object) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    resources = container.setdefault("resources", {})
    limits = resources.get("limits") or {}
    if limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}
    image = container.get("image") or ""
    tag = image.rpartition("/")[2].partition(":")[2] if "@" not in image else "digest"
    container.setdefault("imagePullPolicy", "Always" if tag in ("", "latest") else "IfNotPresent")
    for port in container.get("ports") or []:
        port.setdefault("protocol", "TCP")


def _fill_tolerations(spec: Object) -> None:
    """DefaultTolerationSeconds: each key unless the Pod already tolerates it with NoExecute or every effect."""
    tolerations = list(spec.get("tolerations") or [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if any(t.get("key", key) == key and t.get("effect", "NoExecute") in ("NoExecute", "") for t in tolerations):
            continue
        tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    spec["tolerations"] = tolerations


def _mount_token(spec: Object, suffix: str) -> None:
    name = f"kube-api-access-{suffix}"
    mounted = False
    for container in [*spec["containers"], *(spec.get("initContainers") or [])]:
        mounts = container.setdefault("volumeMounts", [])
        if any(mount.get("mountPath") == _SERVICE_ACCOUNT_PATH for mount in mounts):
            continue
        mounts.append({"name": name, "readOnly": True, "mountPath": _SERVICE_ACCOUNT_PATH})
        mounted = True
    if not mounted:
        return
    sources: list[Object] = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [
                    {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
                ]
            }
        },
    ]
    spec.setdefault("volumes", []).append({"name": name, "projected": {"sources": sources, "defaultMode": 420}})


def _qos_class(spec: Object) -> str:
    resources: list[Any] = [container.get("resources") or {} for container in spec["containers"]]
    if not any(item.get("requests") or item.get("limits") for item in resources):
        return "BestEffort"
    guaranteed = all(
        {"cpu", "memory"} <= set(item.get("limits") or {}) and item["requests"] == item["limits"] for item in resources
    )
    return "Guaranteed" if guaranteed else "Burstable"
