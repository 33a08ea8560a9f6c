"""What we send that RunPod added after its published OpenAPI document (2.9.0 of 2026-08-18).

Sources: the newer "create a pod" page of RunPod's documentation and types generated from a newer
specification (autumn 2026). The contract test admits exactly these beyond the document.
"""

from __future__ import annotations

POD_FIELDS = frozenset({"entrypoint", "cmd"})
"""Members of the ``POST /v2/pods`` body."""

GPU_FIELDS = frozenset({"minRamPerGpu", "minVcpuCountPerGpu"})
"""Members of its ``gpu`` object."""

LIST_PARAMETERS = frozenset({"limit", "cursor"})
"""Query parameters of ``GET /v2/pods`` and, where it has pages at all, ``GET /v2/registries``."""
