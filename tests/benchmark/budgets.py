"""The budgets of the design, each with the place of its figure in what was measured."""

from __future__ import annotations

from collections.abc import Callable

from tests.benchmark.rows import Budget, Section


def _decision(section: Section, candidates: int, start: str) -> float:
    medians = [
        line["median_ms"] for line in section["lines"] if (line["candidates"], line["start"]) == (candidates, start)
    ]
    return float(max(medians))


def _decisions(section: Section) -> str:
    parts = [
        f"{candidates} candidates {start}: {_decision(section, candidates, start):g} ms"
        for candidates in (100, 1000)
        for start in ("warm", "cold")
    ]
    return "; ".join([*parts, f"first of all {section['first_ms']:g} ms"])


def _last_stages(phase: Section) -> str:
    return ", ".join(
        f"{line['stage']} {line['p50_s']:g}/{line['p95_s']:g}/{line['max_s']:g}"
        for line in phase["stages"]
        if "p50_s" in line
    )


def _engine_detail(direction: str) -> Callable[[Section], str]:
    def detail(section: Section) -> str:
        phase = section[direction]
        return (
            f"{section['pods']} Pods, {phase['pods_per_second']:g}/s, a tick each {section['tick_seconds']:g} s; "
            f"p50/p95/max s: {_last_stages(phase)}; CPU {cpu_per_pod(phase):.1f} ms a Pod without the observer, "
            f"{phase['emulator_share']:.0%} of all in the emulator"
        )

    return detail


def cpu_per_pod(phase: Section) -> float:
    """Processor milliseconds per Pod of everything but the observer."""
    return float(sum(ms for name, ms in phase["cpu_ms_per_pod"].items() if name != "observer"))


def _is_of(pods: int) -> Callable[[Section], bool]:
    return lambda section: bool(section["pods"] == pods)


def _growth(section: Section) -> float:
    small, large = section["small"], section["large"]
    return max(cpu_per_pod(large[direction]) / max(cpu_per_pod(small[direction]), 1e-9) for direction in ("up", "down"))


def _growths(section: Section) -> str:
    return "; ".join(
        f"{run['pods']} Pods: {run['up']['seconds']:g} s up, {run['down']['seconds']:g} s down, "
        f"CPU {cpu_per_pod(run['up']):.1f} + {cpu_per_pod(run['down']):.1f} ms a Pod"
        for run in (section["small"], section["large"])
    )


def _worst_life(key: str) -> Callable[[Section], float]:
    return lambda section: float(max(life[key] for life in section["lives"].values()))


def _lives(key: str) -> Callable[[Section], str]:
    return lambda section: "; ".join(f"{name}: {life[key]}" for name, life in section["lives"].items())


def _worst_import(section: Section) -> float:
    return float(max(timing["cpu_s"] for timing in section["functions"].values()))


def _imports(section: Section) -> str:
    return "; ".join(
        f"{name} {timing['cpu_s']:g} s (wall {timing['wall_s']:g}, without .pyc {timing['cold_cpu_s']:g})"
        for name, timing in section["functions"].items()
    )


def _stack_detail(direction: str) -> Callable[[Section], str]:
    def detail(section: Section) -> str:
        phase = section[direction]
        return (
            f"{section['pods']} Pods, {phase['pods_per_second']:g}/s, a tick each {section['tick_seconds']:g} s; "
            f"p50/p95/max s: {_last_stages(phase)}; "
            f"CPU share of the simulators in both directions {section['emulator_share']:.0%} ({section['cpu_summary']})"
        )

    return detail


_ENGINE = "memory ledgers, simulated provider that runs at creation, Kubernetes emulator over HTTP; wall clock"
_STACK = "moto, RunPod simulator and Kubernetes emulator over HTTP; wall clock"
BUDGETS = (
    Budget(
        "decision",
        "placement decision over 100 candidates, median",
        "placement",
        "ms",
        0.5,
        "the slowest strategy's warm median, processor time",
        lambda s: _decision(s, 100, "warm"),
        _decisions,
    ),
    Budget(
        "engine-up",
        "engine only: Pods gated to Running and Ready",
        "engine",
        "s",
        10.0,
        f"{_ENGINE} from before the first create to the last Ready",
        lambda s: s["up"]["seconds"],
        _engine_detail("up"),
        _is_of(500),
    ),
    Budget(
        "engine-down",
        "engine only: Pods deleted to gone",
        "engine",
        "s",
        10.0,
        f"{_ENGINE} from before the first delete to the last Pod gone",
        lambda s: s["down"]["seconds"],
        _engine_detail("down"),
        _is_of(500),
    ),
    Budget(
        "engine-linear",
        "engine only: CPU per Pod, the large run against the small",
        "linearity",
        "x",
        1.25,
        "processor time of every process but the observer, the worse of both directions",
        _growth,
        _growths,
        lambda section: section["large"]["pods"] >= 10 * section["small"]["pods"] >= 5000,
    ),
    Budget(
        "stack",
        "local stack: Pods gated to Running and Ready",
        "stack",
        "s",
        None,
        _STACK,
        lambda s: s["up"]["seconds"],
        _stack_detail("up"),
    ),
    Budget(
        "stack-down",
        "local stack: Pods deleted to gone",
        "stack",
        "s",
        None,
        _STACK,
        lambda s: s["down"]["seconds"],
        _stack_detail("down"),
    ),
    Budget(
        "provider-calls",
        "provider calls on instances in a Pod's life",
        "life",
        "calls",
        2.0,
        "counted at the simulated provider, the dearest of the lives",
        _worst_life("provider_calls"),
        _lives("provider_calls"),
    ),
    Budget(
        "item-writes",
        "DynamoDB item writes of a Pod's life",
        "life",
        "writes",
        12.0,
        "counted at DynamoDB's client over moto, the dearest of the lives",
        _worst_life("item_writes"),
        _lives("item_writes"),
    ),
    Budget(
        "idle-writes",
        "DynamoDB item writes of a tick without change",
        "life",
        "writes",
        0.0,
        "four ticks over three running Pods",
        lambda s: s["quiet_tick_item_writes"],
    ),
    Budget(
        "kubernetes-writes",
        "Kubernetes writes of a Pod's life, Events included",
        "life",
        "writes",
        8.0,
        "counted at the API emulator, the dearest of the lives",
        _worst_life("kubernetes_writes"),
        _lives("kubernetes_writes"),
    ),
    Budget(
        "import",
        "import of a function's app with its AWS clients",
        "import",
        "s",
        0.6,
        "fresh interpreters with .pyc, the slowest function's median, processor time",
        _worst_import,
        _imports,
    ),
    Budget(
        "layer",
        "dependencies layer, unzipped",
        "layer",
        "MB",
        70.0,
        "apparent size of its files",
        lambda s: s["megabytes"],
        lambda s: str(s["source"]),
    ),
    Budget(
        "idle-free",
        "idle cost a month within the always-free tiers",
        "idle",
        "USD",
        3.0,
        "counted and measured quantities times dated prices",
        lambda s: s["total_with_free_tier"],
        lambda s: s["arithmetic"]["free"],
    ),
    Budget(
        "idle-full",
        "idle cost a month without free tiers",
        "idle",
        "USD",
        6.0,
        "the same without any free quantity",
        lambda s: s["total"],
        lambda s: s["arithmetic"]["full"],
    ),
    Budget(
        "alarms",
        "alarms of the template",
        "idle",
        "alarms",
        10.0,
        "AWS::CloudWatch::Alarm resources",
        lambda s: s["alarms"],
        lambda s: f"{s['alarm_metrics']} metrics are billed",
    ),
    Budget(
        "idle-metrics",
        "custom metrics sent while idle",
        "idle",
        "metrics",
        0.0,
        "EMF lines of idle minutes",
        lambda s: s["custom_metrics"],
    ),
)
