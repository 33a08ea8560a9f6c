"""The container's output from RunPod's event stream (server-sent events, ``data: {"ts","source","line"}``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nebula.providers.runpod.wire import decode

_MAX_LINE = 16 * 1024


def read_events(lines: Iterable[str]) -> Iterator[str]:
    """The text of each event that has a ``line``; comments, ids and what cannot be read are passed over."""
    for line in lines:
        if not line.startswith("data:"):
            continue
        try:
            content = decode(line[len("data:") :].strip().encode())
        except ValueError:
            continue
        text = content.get("line") if isinstance(content, dict) else None
        if isinstance(text, str):
            yield text[:_MAX_LINE]
