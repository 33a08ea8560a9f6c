"""The kubeconfig of a running stack. kubectl sends a token over TLS only, so the API listens there too."""

from __future__ import annotations

import base64
import json
import os
import ssl
import tempfile
from pathlib import Path

from local.certificates import Certificates

_NAME = "nebula-local"


def write(path: Path, server: str, certificates: Certificates, token: str) -> None:
    """Write it whole or not at all, readable by the owner only. JSON is YAML, and kubectl reads it."""
    authority = base64.b64encode(certificates.authority.encode()).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": _NAME, "user": {"token": token}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
    draft.replace(path)


def server_context(certificates: Certificates) -> ssl.SSLContext:
    """What a server needs to show the certificate. The key is on disk for a moment, for the owner's eyes only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(certificates.certificate + certificates.key)
        file.flush()
        context.load_cert_chain(file.name)
    return context
