"""Whatever stands in a manifest: it is translated or refused in words, and nothing else is raised."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from nebula.kubernetes.node_fit import pod_problems
from nebula.kubernetes.pod import MalformedPodError, Pod
from nebula.kubernetes.release import release_patch
from nebula.kubernetes.workload import InvalidPodError, WaitingForReferenceError, refusals, translate
from nebula.kubernetes.workload_fields import FIELDS

from tests.support.pods import References, node_pool, pod_object

KEYS = st.sampled_from(["name", "key", "value", "valueFrom", "secretKeyRef", "fieldRef", "projected", "sources", "x"])
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 70000), st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)
PATHS = st.sampled_from(sorted(field.path.replace("[]", "") for field in FIELDS))
NODE: dict[str, Any] = {"metadata": {"name": "n", "labels": {}}, "spec": {}, "status": {"allocatable": {"cpu": "1"}}}


def put(spec: dict[str, Any], path: str, value: object) -> None:
    *parents, last = path.split(".")
    at: Any = spec
    for part in parents:
        at = at[part][0] if part == "containers" else at.setdefault(part, {})
        if not isinstance(at, dict):
            return
    at[last] = value


@settings(max_examples=300)
@given(st.lists(st.tuples(PATHS, JSON), min_size=1, max_size=3))
def test_any_manifest_is_translated_or_refused_in_words(changes: list[tuple[str, object]]) -> None:
    found = pod_object()
    for path, value in changes:
        if path != "containers" and isinstance(found["spec"].get("containers"), list):
            put(found["spec"], path, copy.deepcopy(value))
    refused = ""
    try:
        pod = Pod.from_object(found)
        refusals(pod)
        pod.fields_hash()
        pod_problems(pod, NODE)
        release_patch(pod, provider="runpod", annotations={})
        translate(pod, node_pool(), References(secrets={"x": {"x": "1"}}).api)
    except (MalformedPodError, InvalidPodError, WaitingForReferenceError) as error:
        refused = str(error)
    else:
        return
    assert refused
