"""Waiting after a refused image: slowly, and not longer than the Pod or its pull Secrets stay as they are.

A provider's words about an image or a registry may be final (a wrong name) or pass (the registry was down), and
do not tell which. So the claim is tried again, less and less often; a Pod or a pull Secret that changes wakes it
at once. Nothing may watch Secrets, so the sweep reads those of the few Pods that wait like this.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from itertools import takewhile

from nebula.domain.claim import Claim, Phase
from nebula.kubernetes.api import ForbiddenError, KubernetesApi, KubernetesError
from nebula.kubernetes.pod import Pod
from nebula.kubernetes.pull_secrets import secret_names
from nebula.workflows.services import Services
from nebula.workflows.views import ClusterView
from nebula.workflows.wake import wake

#: The reason of a claim whose image was refused.
IMAGE_PULL = "ImagePull"
#: How an attempt's detail begins that was refused while another credential was left to try: no pause followed it.
NEXT_PULL = "the image was refused with the credential of Secret"
FIRST_PAUSE = timedelta(minutes=5)
LONGEST_PAUSE = timedelta(hours=1)
#: Claims whose Secrets one sweep reads, the longest waiting first.
READ_PER_SWEEP = 50


def image_pause(claim: Claim) -> timedelta:
    """How long a claim rests after its latest attempt was refused for its image: doubled by each in a row."""
    paused = (attempt for attempt in reversed(claim.attempts[:-1]) if not attempt.detail.startswith(NEXT_PULL))
    before = takewhile(lambda attempt: attempt.detail.startswith(IMAGE_PULL), paused)
    return min(FIRST_PAUSE * (1 << min(sum(1 for _ in before), 10)), LONGEST_PAUSE)


def pull_secrets_version(api: KubernetesApi, pod: Pod) -> str:
    """A hash that changes when a pull Secret of the Pod is replaced, edited, deleted or becomes readable.

    Empty for a Pod that names none. Raises ``ClusterUnavailableError``.
    """
    names = list(secret_names(pod.object))
    if not names:
        return ""
    text = "\n".join(f"{name} {_version(api, pod.namespace, name)}" for name in names)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _version(api: KubernetesApi, namespace: str, name: str) -> str:
    try:
        found = api.get_secret(namespace, name)
    except ForbiddenError:
        return "forbidden"
    meta = (found or {}).get("metadata") or {}
    return f"{meta.get('uid', '')} {meta.get('resourceVersion', '')}" if found is not None else "absent"


def wake_image_waiters(services: Services, view: ClusterView, *, until: datetime) -> int:
    """Make claims due whose pull Secrets are not those that were refused any more; returns how many.

    Stops when it is ``until``. The longest waiting come first.
    """
    waiting = [claim for claim in view.claims if claim.phase is Phase.PENDING and claim.reason == IMAGE_PULL]
    waiting.sort(key=lambda claim: (claim.phase_since, claim.claim_id))
    early = takewhile(lambda _: services.clock.now() < until, waiting[:READ_PER_SWEEP])
    changed = [claim for claim in early if _changed(services, view, claim)]
    return wake(services, changed)


def _changed(services: Services, view: ClusterView, claim: Claim) -> bool:
    pod = (view.pods or {}).get(claim.pod_uid)
    if pod is None:
        return False
    try:
        return pull_secrets_version(view.api, pod) != claim.pull_secrets_version
    except KubernetesError as error:
        services.telemetry.warning("pull secrets unknown", claim_id=claim.claim_id, error=str(error))
        return False
