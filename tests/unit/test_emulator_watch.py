"""Watches of the Kubernetes emulator cost nothing while nothing happens."""

from __future__ import annotations

import threading

import pytest

from local.kubernetes.resources import CONFIG_MAPS, PODS, Resource
from local.kubernetes.server import Emulator
from local.kubernetes.storage import Change, Store


@pytest.mark.parametrize("bookmarks", ["true", "false"])
def test_a_watch_does_not_spin_after_its_first_bookmark(bookmarks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    changes = Store.changes

    def counted(store: Store, resource: Resource, after: int) -> list[Change]:
        looks.append(after)
        return changes(store, resource, after)

    monkeypatch.setattr(Store, "changes", counted)
    emulator = Emulator(bookmark_interval=0.05)
    query = {"watch": "true", "timeoutSeconds": "0.3", "allowWatchBookmarks": bookmarks}
    lines = list(emulator.handle("GET", "/api/v1/pods", query, {}).body)
    assert len(looks) < 20
    assert bool(lines) is (bookmarks == "true")


def test_a_write_wakes_only_those_who_watch_its_kind() -> None:
    store = Emulator(schedule=False).store
    woken: list[str] = []

    def wait(name: str, resource: Resource) -> None:
        with store.lock:
            waiting.release()
            if store.changed(resource).wait(0.5):
                woken.append(name)

    waiting = threading.Semaphore(0)
    threads = [
        threading.Thread(target=wait, args=(name, resource))
        for name, resource in (("pods", PODS), ("maps", CONFIG_MAPS))
    ]
    for thread in threads:
        thread.start()
        waiting.acquire()
    with store.lock:
        store.write(CONFIG_MAPS, ("default", "a"), {"metadata": {"name": "a"}})
    for thread in threads:
        thread.join()
    assert woken == ["maps"]
