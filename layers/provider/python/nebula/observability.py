"""Logs and metrics: Powertools behind a Protocol, with a memory twin.

Metric dimensions are bounded by configuration (function, provider, reason); ids go to the log only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import MetricUnit, single_metric

NAMESPACE = "Nebula"


class Telemetry(Protocol):
    """What workflows say of themselves. No value may be a secret."""

    def info(self, message: str, **fields: Any) -> None:
        """One line of what happened."""
        ...

    def warning(self, message: str, **fields: Any) -> None:
        """Something a person may want to look at."""
        ...

    def error(self, message: str, **fields: Any) -> None:
        """Something that costs money or loses work until a person acts."""
        ...

    def count(self, metric: str, value: float = 1, *, unit: str = "Count", **dimensions: str) -> None:
        """Add to a metric. Zero is not sent (custom metrics cost money)."""
        ...


class PowertoolsTelemetry:
    """Structured JSON log lines and EMF metrics on standard output.

    ``namespace`` keeps the metrics of two installations in one account apart.
    """

    def __init__(self, function: str, namespace: str = NAMESPACE) -> None:
        self._function = function
        self._namespace = namespace
        self._logger = Logger(service=f"nebula-{function.replace('_', '-')}")

    def info(self, message: str, **fields: Any) -> None:
        """See ``Telemetry``."""
        self._logger.info(message, extra=fields)

    def warning(self, message: str, **fields: Any) -> None:
        """See ``Telemetry``."""
        self._logger.warning(message, extra=fields)

    def error(self, message: str, **fields: Any) -> None:
        """See ``Telemetry``."""
        self._logger.error(message, extra=fields)

    def count(self, metric: str, value: float = 1, *, unit: str = "Count", **dimensions: str) -> None:
        """See ``Telemetry``."""
        if not value:
            return
        with single_metric(name=metric, unit=MetricUnit(unit), value=value, namespace=self._namespace) as emitted:
            emitted.add_dimension(name="function", value=self._function)
            for name, text in dimensions.items():
                emitted.add_dimension(name=name, value=text)


@dataclass
class MemoryTelemetry:
    """Keeps what was said, for tests."""

    lines: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    metrics: list[tuple[str, float, dict[str, str]]] = field(default_factory=list)

    def info(self, message: str, **fields: Any) -> None:
        """See ``Telemetry``."""
        self.lines.append(("info", message, fields))

    def warning(self, message: str, **fields: Any) -> None:
        """See ``Telemetry``."""
        self.lines.append(("warning", message, fields))

    def error(self, message: str, **fields: Any) -> None:
        """See ``Telemetry``."""
        self.lines.append(("error", message, fields))

    def count(self, metric: str, value: float = 1, *, unit: str = "Count", **dimensions: str) -> None:  # noqa: ARG002
        """See ``Telemetry``."""
        self.metrics.append((metric, value, dimensions))

    def total(self, metric: str) -> float:
        """Sum of a metric over all dimensions."""
        return sum(value for name, value, _ in self.metrics if name == metric)
