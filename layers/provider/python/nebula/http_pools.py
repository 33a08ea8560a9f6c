"""The last step of a call: a kept connection of ``urllib3`` and nothing around it.

No redirects, cookies, proxies, passwords from files or repetitions: none of it is wanted here, and what a larger
library does to decide so costs each call more processor time than all else that a workflow does for it.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from typing import Any, Protocol

import certifi
import urllib3

_ADDRESSES = 4
#: A connection that was not used for so long (seconds) is made anew. A function is frozen between two events, and does
#: not hear that a peer or a NAT gave the connection up; what is then sent on it fails, and a create that fails so may
#: have happened for all that anybody knows.
IDLE_SECONDS = 30.0


class Opener(Protocol):
    """Sends one request. Safe to share between threads."""

    def open(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, *, connect: float, read: float
    ) -> urllib3.BaseHTTPResponse:
        """The answer, its body unread; ``connect`` and ``read`` are seconds to connect and between two reads.

        Raises ``urllib3.exceptions.HTTPError``, OSError or ValueError.
        """
        ...


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


class Pools:
    """See ``Opener``. One pool of kept connections for each of a few addresses; with more, pools are made again.

    ``trust`` is whom to trust instead of the public certificate authorities.
    """

    def __init__(self, *, pool_size: int = 16, trust: ssl.SSLContext | None = None) -> None:
        whom: dict[str, Any] = {"ca_certs": certifi.where()} if trust is None else {"ssl_context": trust}
        self._manager = urllib3.PoolManager(_ADDRESSES, maxsize=pool_size, cert_reqs="CERT_REQUIRED", **whom)
        self._manager.pool_classes_by_scheme = {"http": _FreshHttp, "https": _FreshHttps}
        self._pools: dict[str, urllib3.HTTPConnectionPool] = {}

    def open(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, *, connect: float, read: float
    ) -> urllib3.BaseHTTPResponse:
        """See ``Opener``."""
        pool, target = self._pool(url)
        return pool.urlopen(
            method,
            target,
            body=body,
            headers=headers,
            retries=False,
            redirect=False,
            assert_same_host=False,
            timeout=urllib3.Timeout(connect=connect, read=read),
            preload_content=False,
        )

    def _pool(self, url: str) -> tuple[urllib3.HTTPConnectionPool, str]:
        """The pool of an address, and what is asked of it; an address is parsed once, not at each call."""
        if not url.startswith(("http://", "https://")):
            raise ValueError("the address begins with no scheme that is spoken here")
        start = url.find("/", url.index("://") + 3)
        address, target = (url, "/") if start < 0 else (url[:start], url[start:])
        pool = self._pools.get(address)
        if pool is None:
            pool = self._manager.connection_from_url(address)
            if len(self._pools) >= _ADDRESSES:
                self._pools.clear()
            self._pools[address] = pool
        return pool, target
