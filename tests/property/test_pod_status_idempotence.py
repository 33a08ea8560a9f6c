"""A status is written once: applying a patch leaves nothing to patch, whatever came before."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from nebula.domain.claim import AttemptOutcome, Claim, Observation, Phase, TerminationReason
from nebula.domain.instance import InstanceState
from nebula.kubernetes.release import release_patch
from nebula.kubernetes.status import status_patch
from nebula.lifecycle.pod_status import desired_status

from tests.support.pods import NOW, Cluster, claim, pod_object

moments = st.integers(0, 3600).map(lambda seconds: NOW + timedelta(seconds=seconds))
observations = st.builds(
    Observation,
    state=st.sampled_from(InstanceState),
    exit_code=st.one_of(st.none(), st.integers(0, 255)),
    running_since=st.one_of(st.none(), moments),
    ended_at=st.one_of(st.none(), moments),
    message=st.sampled_from(["", "pulling", "no such image"]),
)
claims = st.builds(
    claim,
    st.sampled_from([Phase.RELEASED, Phase.TERMINATING]),
    outcome=st.sampled_from(AttemptOutcome),
    observation=observations,
    termination_reason=st.one_of(st.none(), st.sampled_from(TerminationReason)),
    released_at=moments,
)


@settings(max_examples=60)
@given(
    st.lists(claims, min_size=1, max_size=4),
    st.sampled_from(["Always", "OnFailure", "Never"]),
    st.one_of(st.none(), st.integers(1, 3600)),
)
def test_a_second_patch_is_never_needed_and_terminal_never_ends(
    life: list[Claim], policy: str, deadline: int | None
) -> None:
    cluster = Cluster()
    found = cluster.add(pod_object(restartPolicy=policy))
    cluster.api.patch_pod("team", "web-0", release_patch(found, provider="runpod", annotations={}))
    ended = None
    for state in life:
        now = cluster.clock.advance(timedelta(minutes=10))
        wanted = desired_status(
            state, now, container_name="main", image="i", restart_policy=policy, active_deadline_seconds=deadline
        )
        if wanted is None:
            continue
        patch = status_patch(cluster.read(), wanted, now)
        if patch is not None:
            cluster.api.patch_pod_status("team", "web-0", patch)
        later = cluster.clock.advance(timedelta(seconds=1))
        after = cluster.read()
        assert status_patch(after, wanted, later) is None
        assert ended is None or after.phase == ended
        ended = after.phase if after.terminal else None
