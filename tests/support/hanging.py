"""A provider's API that takes a call and never answers: the clock runs until the caller gives up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import requests
from nebula.providers.runpod import RunPodProvider
from requests.adapters import BaseAdapter

from local.runpod.adapter import BASE_URL
from tests.support.runpod_installation import RunPodInstallation


class Hanging(BaseAdapter):
    """Stands before the simulator. Calls of ``methods`` hang, after their effect where ``works``.

    ``waited`` holds (method, path, seconds) of each call that hung. A call without a timeout would hang
    for ever: AssertionError.
    """

    def __init__(self, world: RunPodInstallation, *methods: str, works: bool = False) -> None:
        super().__init__()
        provider = world.providers.get("runpod")
        assert isinstance(provider, RunPodProvider)
        session = provider._client._http._session
        self._inner = session.get_adapter(BASE_URL)
        self._clock = world.clock
        self.methods = set(methods)
        self.works = works
        self.waited: list[tuple[str, str, float]] = []
        session.mount(BASE_URL, self)

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        if request.method not in self.methods:
            return self._inner.send(request, *args, **kwargs)
        connect, read = kwargs["timeout"]
        assert connect is not None
        assert read is not None
        if self.works:
            self._inner.send(request, *args, **kwargs)
        self._clock.advance(timedelta(seconds=read))
        self.waited.append((str(request.method), str(request.path_url), read))
        raise requests.ReadTimeout(request=request)

    def close(self) -> None:
        """Nothing to close."""
