"""The environment of ``sam local invoke`` against a running ``make stack``.

With ``--docker-network host`` the container reaches the servers on the host's loopback; elsewhere replace
``127.0.0.1`` in the written file by ``host.docker.internal``.
"""

from __future__ import annotations

import json
from pathlib import Path

from local.deployment import ROOT, Deployment, Endpoints

SAM_ENVIRONMENT = ROOT / "local" / "sam-env.json"
#: Options of ``local.servers`` under ``make stack``: the same addresses at each start, something to look at.
PORTS = ("--aws-port", "4566", "--runpod-port", "4567", "--kubernetes-port", "4568")
KUBECONFIG = ROOT / ".local" / "kubeconfig"
SERVER_OPTIONS = (*PORTS, "--fixtures", "--kubeconfig", str(KUBECONFIG))


def write_sam_environment(deployment: Deployment, endpoints: Endpoints) -> Path:
    """Write ``--env-vars`` for every function; returns the file."""
    unset = {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"}
    common = {name: value for name, value in endpoints.client_environment().items() if name not in unset}
    functions = {function.logical_id: {**common, **function.environment} for function in deployment.functions}
    SAM_ENVIRONMENT.write_text(json.dumps(functions, indent=2) + "\n", encoding="utf-8")
    return SAM_ENVIRONMENT
