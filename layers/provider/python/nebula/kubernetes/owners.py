"""What becomes of a Pod that failed: its controller's business, said on the Pod. Pure."""

from __future__ import annotations

from nebula.kubernetes.pod import Pod


def what_follows(pod: Pod) -> str:
    """Who makes the next try after this Pod, in a few words; nobody does for one without a controller."""
    owners = (pod.object.get("metadata") or {}).get("ownerReferences") or []
    owner = next((one for one in owners if isinstance(one, dict) and one.get("controller") is True), None)
    if owner is None:
        return "no controller owns the Pod, so nothing tries again"
    kind, name = owner.get("kind", ""), owner.get("name", "")
    if kind == "Job":
        return f"Job {name} decides whether there is another try"
    return f"{kind} {name} replaces the Pod"
