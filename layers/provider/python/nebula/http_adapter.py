"""The last step of a call: a pooled connection and nothing around it.

``requests`` resolves the pool anew, counts redirects and cookies, and parses the address several times for each
call, which took more processor time than all else that a workflow does. The pool, with its trust in certificates,
is made by ``requests`` itself, once for each address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict

_ADDRESSES = 4


class DirectAdapter(HTTPAdapter):
    """Sends on a kept connection; no redirects, cookies, proxies or repetitions. Safe to share between threads.

    A session speaks to a few addresses; with more of them, pools are made again.
    """

    def __init__(self, *, pool_size: int = 16) -> None:
        self._pools: dict[tuple[object, ...], urllib3.HTTPConnectionPool] = {}
        super().__init__(pool_connections=2 * _ADDRESSES, pool_maxsize=pool_size)

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: ARG002 - the body is always read by the caller
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> requests.Response:
        """One request, its body unread. Raises ``urllib3.exceptions.HTTPError`` or ``requests.RequestException``.

        ``timeout`` is a pair: seconds to connect and between two reads.
        """
        connect, read = timeout
        url = str(request.url)
        pool, target = self._pool(request, url, verify, cert)
        raw = pool.urlopen(
            str(request.method),
            target,
            body=request.body,
            headers=request.headers,
            retries=False,
            redirect=False,
            assert_same_host=False,
            timeout=urllib3.Timeout(connect=connect, read=read),
            preload_content=False,
        )
        response = requests.Response()
        response.status_code = raw.status
        response.headers = CaseInsensitiveDict(raw.headers)
        response.raw = raw
        response.url = url
        response.request = request
        return response

    def close(self) -> None:
        """Close every connection."""
        self._pools.clear()
        super().close()

    def _pool(
        self, request: requests.PreparedRequest, url: str, verify: bool | str, cert: Any
    ) -> tuple[urllib3.HTTPConnectionPool, str]:
        start = url.find("/", url.find("://") + 3)
        address, target = (url, "/") if start < 0 else (url[:start], url[start:])
        key = (address, verify, cert)
        pool = self._pools.get(key)
        if pool is None:
            pool = cast("urllib3.HTTPConnectionPool", self.get_connection_with_tls_context(request, verify, cert=cert))
            self.cert_verify(pool, url, verify, cert)  # type: ignore[no-untyped-call]
            if len(self._pools) >= _ADDRESSES:
                self._pools.clear()
            self._pools[key] = pool
        return pool, target
