"""A dry run of placement: the same engine, nothing written, nothing bought (docs/placement.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nebula.domain.claim import Claim, claim_id_for
from nebula.domain.nodepool import NodePool
from nebula.kubernetes.api import KubernetesApi
from nebula.kubernetes.manifest import DRY_RUN_UID, pod_from_manifest
from nebula.kubernetes.names import ENABLED, GATE, LABEL_ENABLED, LABEL_NODE_POOL
from nebula.kubernetes.node import node_name, node_object, state_of
from nebula.kubernetes.node_pool import InvalidNodePoolError, node_pool_from_object
from nebula.kubernetes.pod import MalformedPodError, Pod
from nebula.placement.engine import decide
from nebula.placement.explain import explanation
from nebula.placement.request import PlacementRequest, ProviderSupply
from nebula.providers.base import Providers
from nebula.stores.blocks import BlockStore
from nebula.stores.claims import ClaimStore
from nebula.workflows.pool_ledger import active_blocks, budget_left, live_claims
from nebula.workflows.services import Services
from nebula.workflows.supply import provider_supply, serves, with_node
from nebula.workflows.wish import NoWishError, Wish, wish_of


@dataclass(frozen=True)
class Scene:
    """What a dry run looks at. Without ``api`` no cluster is asked: budget, live claims and Nodes are unknown."""

    providers: Providers
    blocks: BlockStore
    claims: ClaimStore
    now: datetime
    api: KubernetesApi | None = None


def explain_pod(
    services: Services, pod_object: Mapping[str, Any], pool_object: Mapping[str, Any] | None, cluster: str = ""
) -> dict[str, Any]:
    """Answer the ``Explain`` event with live prices, stock, blocks and budget.

    ``cluster`` may be left out where the installation has exactly one. Without ``pool_object`` the
    NodePool that the Pod names is read from that cluster.
    """
    names = list(services.clusters.names())
    chosen = cluster or (names[0] if len(names) == 1 else "")
    if cluster and cluster not in names:
        return refusal("UnknownCluster", f"{cluster} is not a cluster of this installation")
    scene = Scene(
        providers=services.providers,
        blocks=services.blocks,
        claims=services.claims,
        now=services.clock.now(),
        api=services.clusters.get(chosen) if chosen else None,
    )
    return explain(scene, pod_object, pool_object)


def explain(scene: Scene, pod_object: Mapping[str, Any], pool_object: Mapping[str, Any] | None) -> dict[str, Any]:
    """The decision that placement would take now, as plain data; ``refused`` says why there can be none."""
    try:
        pod = pod_from_manifest(pod_object)
        pool = _pool(scene, pod, pool_object)
        wish = wish_of(pod, pool)
    except MalformedPodError as error:
        return refusal("InvalidPod", str(error))
    except InvalidNodePoolError as error:
        return refusal("InvalidNodePool", str(error))
    except NoWishError as error:
        return refusal(error.reason, str(error))
    supplies = [_supply(scene, pod, wish, provider_supply(scene.providers, entry)) for entry in pool.providers]
    blocks = active_blocks(scene.blocks, supplies, scene.now)
    live = live_claims(scene.claims, _cluster(scene), pool)
    decision = decide(_request(scene, pod, wish), pool, supplies, blocks, live, scene.now)
    return {
        "pod": f"{pod.namespace}/{pod.name}",
        "node_pool": pool.name,
        "strategy": str(pool.strategy),
        "shape": str(wish.shape),
        "asks_for": wish.shape.spoken(),
        "cluster": scene.api.name if scene.api is not None else None,
        "refused": None,
        **explanation(decision, scene.now),
        "notes": _notes(scene, pod, pool, supplies),
    }


def refusal(reason: str, message: str) -> dict[str, Any]:
    """The answer when the Pod cannot be placed whatever the offers are."""
    return {"refused": {"reason": reason, "message": message}, "placed": False, "candidates": [], "notes": []}


def _pool(scene: Scene, pod: Pod, pool_object: Mapping[str, Any] | None) -> NodePool:
    if pool_object is not None:
        return node_pool_from_object(pool_object)
    if scene.api is None:
        raise NoWishError("NodePoolNotFound", "no NodePool was given, and no cluster to read it from", again=False)
    if pod.node_pool is None:
        raise NoWishError("NodePoolNotNamed", "the Pod names no NodePool", again=False)
    found = scene.api.get_node_pool(pod.node_pool)
    if found is None:
        raise NoWishError("NodePoolNotFound", f"NodePool {pod.node_pool} does not exist", again=False)
    return node_pool_from_object(found)


def _supply(scene: Scene, pod: Pod, wish: Wish, supply: ProviderSupply) -> ProviderSupply:
    """With the Node as it is, or as placement would make it; a dry run makes none."""
    if not serves(supply, wish.shape):
        return supply
    live = scene.api.get_node(node_name(supply.name)) if scene.api is not None else None
    node = live or node_object(supply.name, scene.now)
    return with_node(supply, pod, state_of(node, repaired=True))


def _request(scene: Scene, pod: Pod, wish: Wish) -> PlacementRequest:
    claim = _claim(scene, pod)
    return PlacementRequest(
        shape=wish.shape,
        claim_id=claim.claim_id if claim is not None else claim_id_for("", pod.uid),
        restart_policy=wish.restart_policy,
        publishes=wish.publishes,
        exclusions=frozenset(claim.exclusions) if claim is not None else frozenset(),
        budget_left=budget_left(scene.claims, _cluster(scene), wish.pool),
        waiting_since=claim.phase_since if claim is not None else None,
    )


def _claim(scene: Scene, pod: Pod) -> Claim | None:
    if scene.api is None or pod.uid == DRY_RUN_UID:
        return None
    return scene.claims.get(claim_id_for(scene.api.name, pod.uid))


def _cluster(scene: Scene) -> str:
    return scene.api.name if scene.api is not None else ""


def _notes(scene: Scene, pod: Pod, pool: NodePool, supplies: list[ProviderSupply]) -> list[str]:
    notes = [f"{supply.name}: {supply.note}" for supply in supplies if supply.note]
    if pod.node_pool not in (None, pool.name):
        notes.append(f"the Pod names NodePool {pod.node_pool}; this answer is for {pool.name}")
    if not pod.enabled:
        notes.append(f'the Pod lacks the opt-in label {LABEL_ENABLED}: "{ENABLED}"; it would not be placed')
    if pod.node_pool is None:
        notes.append(f"the Pod lacks the label {LABEL_NODE_POOL}; it would not be placed")
    if not pod.gated and scene.api is None:
        notes.append(f"the Pod lacks the gate {GATE}; it would not be placed, unless the cluster's policy adds it")
    if scene.api is None:
        notes.append("no cluster was asked: what its NodePool has committed already is not in this answer")
    return list(dict.fromkeys(notes))
