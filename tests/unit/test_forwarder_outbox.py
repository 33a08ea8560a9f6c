from __future__ import annotations

from collections.abc import Sequence
from threading import Event as Flag

from nebula.events.details import DetailType, NodePoolDetail, PodDetail
from nebula.events.envelope import Event
from nebula.events.publisher import PublishError

from cluster.forwarder.meters import Meters
from cluster.forwarder.outbox import BATCH, Outbox


class _Bus:
    """Takes events, after refusing some: each refusal is a set of names, or None for a call that fails."""

    def __init__(self, *refusals: set[str] | None) -> None:
        self.taken: list[str] = []
        self.calls = 0
        self._refusals = list(refusals)

    def publish(self, events: Sequence[Event]) -> None:
        self.calls += 1
        refused = self._refusals.pop(0) if self._refusals else set()
        if refused is None:
            raise PublishError("PutEvents failed: InternalFailure")
        unsent = [event for event in events if _name(event) in refused]
        self.taken += [_name(event) for event in events if event not in unsent]
        if unsent:
            raise PublishError("some", unsent)


def _name(event: Event) -> str:
    assert isinstance(event.detail, PodDetail | NodePoolDetail)
    return event.detail.name


def _pod(name: str, version: str = "1") -> Event:
    detail = PodDetail(cluster="c", namespace="default", name=name, uid=f"uid-{name}", resource_version=version)
    return Event(source="nebula.kubernetes", detail_type=DetailType.POD_GATED, detail=detail)


def _outbox(bus: _Bus) -> tuple[Outbox, Meters]:
    meters = Meters()
    return Outbox(bus, meters.count, linger=0), meters


def test_events_leave_ten_at_a_time_and_in_order() -> None:
    bus = _Bus()
    outbox, meters = _outbox(bus)
    outbox.put([_pod(f"p{index}") for index in range(BATCH + 1)])
    assert outbox.send()
    assert len(outbox) == 1
    assert outbox.send()
    assert bus.taken == [f"p{index}" for index in range(BATCH + 1)]
    assert (bus.calls, meters.value("events_sent")) == (2, BATCH + 1)


def test_only_refused_entries_are_sent_again_and_first() -> None:
    bus = _Bus({"b"})
    outbox, meters = _outbox(bus)
    outbox.put([_pod("a"), _pod("b")])
    assert not outbox.send()
    outbox.put([_pod("c")])
    assert outbox.send()
    assert bus.taken == ["a", "b", "c"]
    assert (meters.value("events_sent"), meters.value("events_failed")) == (3, 1)


def test_a_failed_call_loses_nothing() -> None:
    bus = _Bus(None)
    outbox, _ = _outbox(bus)
    outbox.put([_pod("a"), _pod("b")])
    assert not outbox.send()
    assert outbox.send()
    assert bus.taken == ["a", "b"]


def test_an_object_waits_once_per_type_with_its_newest_version() -> None:
    outbox, _ = _outbox(_Bus(None))
    outbox.put([_pod("a", "1")])
    assert not outbox.send()
    outbox.put([_pod("a", "2"), _pod("a", "3")])
    assert len(outbox) == 1


def test_lag_is_the_age_of_the_oldest_unsent_event() -> None:
    now = 100.0
    outbox = Outbox(_Bus(None, None), Meters().count, linger=0, monotonic=lambda: now)
    assert outbox.lag() == 0
    outbox.put([_pod("a")])
    now = 105.0
    outbox.send()
    outbox.put([_pod("b")])
    now = 107.0
    assert outbox.lag() == 7


def test_stopping_sends_what_is_left() -> None:
    bus = _Bus()
    outbox, _ = _outbox(bus)
    outbox.put([_pod(f"p{index}") for index in range(25)])
    stop = Flag()
    stop.set()
    outbox.run(stop)
    assert len(bus.taken) == 25


class _Patient(Flag):
    """Set after some calls of the bus; notes what it is asked to wait, and waits for nothing."""

    def __init__(self, bus: _Bus, calls: int) -> None:
        super().__init__()
        self.waits: list[float] = []
        self._bus = bus
        self._calls = calls

    def is_set(self) -> bool:
        return self._bus.calls >= self._calls

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout or 0)
        return self.is_set()


def test_a_bus_that_takes_some_of_each_call_is_not_waited_for_longer_each_time() -> None:
    waits = {}
    for name, refusal in (("some", {"p0"}), ("nothing", None)):
        bus = _Bus(*[refusal] * 6)
        outbox, _ = _outbox(bus)
        outbox.put([_pod(f"p{index}") for index in range(60)])
        patient = _Patient(bus, 6)
        outbox.run(patient)
        waits[name] = patient.waits
    assert waits["some"] == [0.5] * 6
    assert waits["nothing"] == [0.5, 1, 2, 4, 8, 16]


def test_meters_speak_prometheus_and_notice_a_silent_watch() -> None:
    now = 0.0
    meters = Meters(lambda: now)
    meters.count("lists")
    meters.gauge("lag_seconds", lambda: 1.5)
    meters.alive("pods")
    assert "nebula_forwarder_lists_total 1\n" in meters.text()
    assert "# TYPE nebula_forwarder_lag_seconds gauge\nnebula_forwarder_lag_seconds 1.5\n" in meters.text()
    now = 599.0
    assert meters.healthy()
    now = 600.0
    assert not meters.healthy()
