"""The last step of a call: a pooled connection and nothing around it.

``requests`` resolves the pool anew, counts redirects and cookies, and parses the address several times for each
call, which took more processor time than all else that a workflow does. The pool, with its trust in certificates,
is made by ``requests`` itself, once for each address.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, cast

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict

_ADDRESSES = 4
#: A connection that was not used for so long (seconds) is made anew. A function is frozen between two events, and does
#: not hear that a peer or a NAT gave the connection up; what is then sent on it fails, and a create that fails so may
#: have happened for all that anybody knows.
IDLE_SECONDS = 30.0


class _Fresh:
    """Before a pool of ``urllib3``: takes no connection that idled for long, by the clock that runs on in a freeze."""

    def _put_conn(self, conn: Any) -> None:
        if conn is not None:
            conn.idle_since = time.time()
        super()._put_conn(conn)  # type: ignore[misc]

    def _get_conn(self, timeout: float | None = None) -> Any:
        conn = super()._get_conn(timeout)  # type: ignore[misc]
        if not 0 <= time.time() - getattr(conn, "idle_since", time.time()) < IDLE_SECONDS:
            conn.close()
        return conn


class _FreshHttp(_Fresh, urllib3.HTTPConnectionPool):
    pass


class _FreshHttps(_Fresh, urllib3.HTTPSConnectionPool):
    pass


class DirectAdapter(HTTPAdapter):
    """Sends on a kept connection; no redirects, cookies, proxies or repetitions. Safe to share between threads.

    A session speaks to a few addresses; with more of them, pools are made again.
    """

    def __init__(self, *, pool_size: int = 16) -> None:
        self._pools: dict[tuple[object, ...], urllib3.HTTPConnectionPool] = {}
        super().__init__(pool_connections=2 * _ADDRESSES, pool_maxsize=pool_size)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Give every pool our look at its connections."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _FreshHttp, "https": _FreshHttps}

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
