"""Every label, annotation, gate, taint and condition name that is ours.

Group and opt-in vocabulary are those of the Nebula operator (InftyAI/Nebula ``api/v1alpha1``), so
that its users' manifests work unchanged.
"""

from __future__ import annotations

from typing import Final

GROUP: Final = "nebula.inftyai.com"

#: Opt-in; only the value ``"true"`` counts.
LABEL_ENABLED: Final = f"{GROUP}/enabled"
ENABLED: Final = "true"
LABEL_NODE_POOL: Final = f"{GROUP}/nodepool"
LABEL_ACCELERATOR_TYPE: Final = f"{GROUP}/accelerator-type"
ENABLED_SELECTOR: Final = f"{LABEL_ENABLED}={ENABLED}"

#: Label and taint of a virtual Node, and the key of the Pod's nodeSelector.
LABEL_PROVIDER: Final = f"{GROUP}/provider"
TAINT_PROVIDER: Final = LABEL_PROVIDER

GATE: Final = f"{GROUP}/provider-selection"

ANNOTATION_CLAIM: Final = f"{GROUP}/claim"
ANNOTATION_INSTANCE_ID: Final = f"{GROUP}/instance-id"
ANNOTATION_CAPACITY_TYPE: Final = f"{GROUP}/capacity-type"
ANNOTATION_REGION: Final = f"{GROUP}/region"
ANNOTATION_ENDPOINT: Final = f"{GROUP}/endpoint"
ANNOTATION_PRICE_PER_HOUR: Final = f"{GROUP}/price-per-hour"
#: Written by us only to move resourceVersion before an instance is withdrawn.
ANNOTATION_WITHDRAWN_AT: Final = f"{GROUP}/withdrawn-at"
#: What only a released Pod has: nothing that is resolved before release may refer to it.
WRITTEN_AT_RELEASE: Final = frozenset(
    {
        ANNOTATION_CLAIM,
        ANNOTATION_INSTANCE_ID,
        ANNOTATION_CAPACITY_TYPE,
        ANNOTATION_REGION,
        ANNOTATION_ENDPOINT,
        ANNOTATION_PRICE_PER_HOUR,
        ANNOTATION_WITHDRAWN_AT,
    }
)
#: The user's: ``none`` or a list like ``8080,9000``; narrows the NodePool's ingress.
ANNOTATION_INGRESS_PORTS: Final = f"{GROUP}/ingress-ports"

CONDITION_RELEASED: Final = f"{GROUP}/Released"

#: The only accelerator resource that is served.
RESOURCE_GPU: Final = "nvidia.com/gpu"

#: Environment names with this prefix carry the ownership mark; a Pod may not set them.
RESERVED_ENV_PREFIX: Final = "NEBULA_"

KUBE_NODE_LEASE: Final = "kube-node-lease"
TAINT_NOT_READY: Final = "node.kubernetes.io/not-ready"
TAINT_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
TAINT_NETWORK_UNAVAILABLE: Final = "node.kubernetes.io/network-unavailable"
