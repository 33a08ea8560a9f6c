"""Lives that the machine once found, told step by step, so that each run lives them again."""

from __future__ import annotations

from datetime import timedelta

from tests.support.lifecycle_machine import Lifecycle

NOTHING = timedelta(0)


def test_five_pods_deleted_by_force_under_one_another_are_believed_gone_in_the_end() -> None:
    """No event tells of them and most Pods are gone at once: unknown for five minutes, then ended."""
    state = Lifecycle()
    state.behave(boot=NOTHING, visible=0, lag=0, dying=NOTHING, queues=False)
    state.delete(force=True, name="a")
    state.delete(force=True, name="b")
    state.something_happens_during_a_create(late=True, name="a")
    state.delete(force=False, name="b")
    state.delete(force=True, name="a")
    state.something_happens_during_a_create(late=True, name="a")
    state.delete(force=True, name="a")
    state.something_happens_during_a_create(late=False, name="a")
    state.something_happens_during_a_create(late=False, name="a")
    state.something_happens_during_a_create(late=False, name="a")
    before = state.happened["mass vanishing"]
    state.teardown()
    assert state.happened["mass vanishing"] > before
