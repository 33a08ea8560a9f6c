"""One function as Lambda runs it: its own environment, its handler, a time-out, one result per call."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from local.deployment import ROOT, Endpoints, Function

Handler = Callable[[Any, Any], Any]
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "VIRTUAL_ENV", "COVERAGE_PROCESS_START")


class TimedOutError(BaseException):
    """Raised inside a handler whose time is up. No ``except Exception`` may stop it, as in Lambda."""


@dataclass(frozen=True)
class Outcome:
    """What one call came to: ``result`` (plain data), or the error's type and traceback."""

    result: Any = None
    error: str = ""
    trace: str = ""
    seconds: float = 0.0


@dataclass
class Context:
    """What handlers read of Lambda's context object."""

    function_name: str
    timeout: float
    aws_request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    memory_limit_in_mb: int = 512
    started: float = field(default_factory=time.monotonic)

    @property
    def invoked_function_arn(self) -> str:
        """An ARN of the right form."""
        return f"arn:aws:lambda:us-east-1:123456789012:function:{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until this call is stopped; 0 when that is past."""
        return max(0, int((self.started + self.timeout - time.monotonic()) * 1000))


def take_environment(function: Function, endpoints: Endpoints) -> None:
    """Make this process's environment the function's own and nothing else."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    os.environ.clear()
    os.environ.update({**kept, **endpoints.client_environment(), **function.environment})


class Runtime:
    """Calls one function's handler; several calls may run at once, as separate environments would."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self._lock = threading.Lock()
        self._handler: Handler | None = None

    def warm(self) -> Handler | Outcome:
        """Import the function's module; the failed outcome of every call when it cannot be imported.

        Lambda does not count this against the time-out either.
        """
        with self._lock:
            if self._handler is None:
                try:
                    self._handler = _load(self.function).handler
                except Exception as error:  # noqa: BLE001 - whatever goes wrong, the calls fail
                    return self._failed(f"Runtime.{type(error).__name__}", traceback.format_exc(), time.monotonic())
            return self._handler

    def invoke(self, event: Any) -> Outcome:
        """One call. The event passes through JSON, as it would on its way to Lambda."""
        started = time.monotonic()
        handler = self.warm()
        if isinstance(handler, Outcome):
            return handler
        context = Context(self.function.environment["AWS_LAMBDA_FUNCTION_NAME"], self.function.timeout)
        watch = _Watch(threading.get_ident(), self.function.timeout)
        try:
            with watch:
                result = json.loads(json.dumps(handler(json.loads(json.dumps(event)), context)))
        except TimedOutError:
            return self._failed("TimedOut", f"no answer in {self.function.timeout:g} s", started)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is a failed call
            return self._failed(type(error).__name__, traceback.format_exc(), started)
        return Outcome(result=result, seconds=time.monotonic() - started)

    def _failed(self, error: str, trace: str, started: float) -> Outcome:
        seconds = time.monotonic() - started
        line = {
            "level": "ERROR",
            "service": self.function.name,
            "message": "call failed",
            "error": error,
            "trace": trace,
        }
        print(json.dumps(line), file=sys.stderr, flush=True)
        return Outcome(error=error, trace=trace, seconds=seconds)


class _Watch:
    """Raises ``TimedOutError`` in a thread that is still inside when the time is up."""

    def __init__(self, thread: int, seconds: float) -> None:
        self._thread = thread
        self._lock = threading.Lock()
        self._inside = True
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._inside = False

    def _expire(self) -> None:
        with self._lock:
            if self._inside:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(TimedOutError)
                )


def _load(function: Function) -> ModuleType:
    path = ROOT / function.app
    spec = importlib.util.spec_from_file_location(f"local_function_{function.name}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
