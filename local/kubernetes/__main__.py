"""``python -m local.kubernetes --port 6443 [--token T]``: the emulator over HTTP on loopback."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from nebula.kubernetes.names import GATE

from local.kubernetes.access import MASTERS, User
from local.kubernetes.http_server import KubernetesServer
from local.kubernetes.pod_defaults import Admission
from local.kubernetes.seed import apply
from local.kubernetes.server import Emulator


def main(arguments: list[str] | None = None) -> int:
    """Serve until interrupted; prints one JSON line with the URL when ready."""
    parser = argparse.ArgumentParser(prog="python -m local.kubernetes", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--token", help="the only bearer token that is accepted; without it everybody is admin")
    parser.add_argument("--gate", action="store_true", help="add the gate to opted-in Pods, as the policy would")
    parser.add_argument("--service-account", action="store_true", help="add the kube-api-access volume to Pods")
    parser.add_argument("manifests", nargs="*", type=Path, help="YAML files to apply at start")
    options = parser.parse_args(arguments)
    tokens = {options.token: User("admin", (MASTERS,))} if options.token else None
    admission = Admission(gate=GATE if options.gate else "", service_account=options.service_account)
    emulator = Emulator(tokens=tokens, admission=admission)
    for manifest in options.manifests:
        apply(emulator, manifest.read_text(encoding="utf-8"))
    server = KubernetesServer(emulator, options.port)
    print(json.dumps({"kubernetes": server.url}), flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
