"""Both processes of the local stack, started and stopped together: ``python -m local.stack``.

*Servers* (AWS, RunPod, Kubernetes, all on loopback) and the *worker* (the functions) are separate process
groups, so that the worker can be killed while the servers live on.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType

from local import run_files
from local.deployment import ROOT, Endpoints
from local.run_files import ServersFile, WorkerFile
from local.scaling import DEFAULT_DIVISOR

_START_SECONDS = 60.0
_STOP_SECONDS = 8.0


class StackFailedError(Exception):
    """A process of the stack did not start; the message names its log."""


class Stack:
    """A running stack in one directory. Use it as a context manager."""

    def __init__(
        self,
        directory: Path,
        *,
        divisor: float = DEFAULT_DIVISOR,
        parameters: Mapping[str, str] | None = None,
        server_options: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self._divisor = divisor
        self._parameters = dict(parameters or {})
        self._server_options = tuple(server_options)
        self._servers: subprocess.Popen[bytes] | None = None
        self._worker: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Stack:
        """Start both and wait until they are ready. ``StackFailedError``."""
        try:
            self.start_servers()
            self.start_worker()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def endpoints(self) -> Endpoints:
        """Where the servers listen."""
        return self._read(ServersFile).endpoints

    @property
    def worker(self) -> WorkerFile:
        """What the worker deployed, and where its functions answer."""
        return self._read(WorkerFile)

    def log(self, name: str) -> Path:
        """The log of ``servers`` or ``worker``."""
        return self.directory / f"{name}.log"

    def start_servers(self) -> None:
        """Start AWS, RunPod and Kubernetes in an empty directory."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self._servers = self._spawn("servers", *self._server_options)
        self._wait("servers", ServersFile, self._servers)

    def start_worker(self) -> None:
        """Start the functions, or start them again after ``kill_worker``."""
        parameters = [part for name, value in self._parameters.items() for part in ("--parameter", f"{name}={value}")]
        run_files.remove(self.directory, WorkerFile)
        self._worker = self._spawn("worker", "--divisor", str(self._divisor), *parameters)
        self._wait("worker", WorkerFile, self._worker)

    def kill_worker(self) -> None:
        """SIGKILL to the worker and all its functions at once."""
        _end(self._worker, signal.SIGKILL)
        self._worker = None

    def stop(self) -> None:
        """End both; the logs stay."""
        _end(self._worker, signal.SIGTERM)
        _end(self._servers, signal.SIGTERM)
        self._worker = self._servers = None

    def wait(self) -> int:
        """Block until one of the two ends by itself; its exit status."""
        if self._worker is None:
            raise StackFailedError("the worker does not run")
        return self._worker.wait()

    def _spawn(self, name: str, *options: str) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(ROOT), str(ROOT / "layers/provider/python")])
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
        with self.log(name).open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"local.{name}", "--dir", str(self.directory), *options],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait(self, name: str, kind: type[ServersFile] | type[WorkerFile], process: subprocess.Popen[bytes]) -> None:
        try:
            run_files.wait_for(self.directory, kind, alive=lambda: process.poll() is None, seconds=_START_SECONDS)
        except (ChildProcessError, TimeoutError) as error:
            last = self.log(name).read_text(errors="replace").strip().splitlines()[-1:]
            told = f" ({last[0]})" if last else ""
            raise StackFailedError(f"the {name} did not start: {error}{told}; see {self.log(name)}") from None

    def _read(self, kind: type[run_files.ModelT]) -> run_files.ModelT:
        found = run_files.read(self.directory, kind)
        if found is None:
            raise StackFailedError("the stack does not run")
        return found


def _end(process: subprocess.Popen[bytes] | None, how: signal.Signals) -> None:
    """Signal a process's whole group and collect it; SIGKILL when it takes too long."""
    if process is None:
        return
    for attempt in (how, signal.SIGKILL):
        try:
            os.killpg(process.pid, attempt)
        except ProcessLookupError:
            break
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        if attempt is signal.SIGKILL:
            break
    process.wait()


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    """End on TERM as on an interrupt: the children are in groups of their own and would live on."""
    raise KeyboardInterrupt


def main() -> int:
    """Run the stack on fixed ports until interrupted; 1 when one runs already, or it does not start."""
    signal.signal(signal.SIGTERM, _interrupted)
    with run_files.only_one(run_files.DEFAULT_DIRECTORY) as ours:
        if not ours:
            print("make stack: a stack of this checkout runs already; interrupt that one first", file=sys.stderr)
            return 1
        try:
            return _run()
        except StackFailedError as error:
            print(f"make stack: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 0


def _run() -> int:
    from local.sam_env import KUBECONFIG, SERVER_OPTIONS, write_sam_environment

    KUBECONFIG.unlink(missing_ok=True)
    print("starting AWS, RunPod, Kubernetes and the functions on this machine ...", flush=True)
    with Stack(run_files.DEFAULT_DIRECTORY, server_options=SERVER_OPTIONS) as stack:
        endpoints = stack.endpoints
        written = write_sam_environment(stack.worker.deployment, endpoints)
        print(f"AWS         {endpoints.aws}")
        print(f"RunPod      {endpoints.runpod}")
        print(f"Kubernetes  {endpoints.kubernetes}  (token: {endpoints.cluster_token})")
        print(f"            export KUBECONFIG={KUBECONFIG}; kubectl get pods")
        print(f"functions   {stack.worker.lambda_url}  (aws lambda invoke --endpoint-url ...)")
        print(f"logs        {stack.log('worker')}")
        print(f"sam local invoke --docker-network host --env-vars {written.relative_to(ROOT)} ...")
        print(f'make credentials ARGS="--env-file {written.relative_to(ROOT)}"')
        print("interrupt to stop", flush=True)
        try:
            return stack.wait()
        finally:
            KUBECONFIG.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
