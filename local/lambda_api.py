"""Lambda's Invoke call over HTTP on loopback, so that ``aws lambda invoke`` and boto3 reach the local functions.

``POST /2015-03-31/functions/<name>/invocations``; a failed call answers 200 with the header
``X-Amz-Function-Error``, as Lambda does.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from local.runtime import Outcome, Runtime
from local.sockets import adopt

_PATH = re.compile(r"^/2015-03-31/functions/([^/?]+)/invocations$")
_MAX_BODY = 6 * 1024 * 1024
_ANSWER_TIMEOUT = 320.0

Answer = tuple[int, dict[str, str], bytes]
Invoke = Callable[[str, bytes], Answer]


class LambdaApi(ThreadingHTTPServer):
    """Serves ``invoke`` on a socket that is already bound, so that its address is known before a fork."""

    daemon_threads = True

    def __init__(self, listener: socket.socket, invoke: Invoke) -> None:
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        adopt(self, listener)
        self.invoke = invoke


def direct(runtime: Runtime) -> Invoke:
    """Answer with one function in this process, whatever name was asked for."""

    def invoke(_name: str, body: bytes) -> Answer:
        try:
            event = json.loads(body or b"null")
        except ValueError:
            return _error(400, "InvalidRequestContentException", "the payload is no JSON")
        return answer_of(runtime.invoke(event))

    return invoke


def forward(urls: Mapping[str, str]) -> Invoke:
    """Pass the call on to the function of that name."""

    def invoke(name: str, body: bytes) -> Answer:
        short = name.rsplit(":", 1)[-1].removeprefix("nebula-local-")
        if short not in urls:
            return _error(404, "ResourceNotFoundException", f"no function {short!r} here")
        connection = http.client.HTTPConnection(urls[short].removeprefix("http://"), timeout=_ANSWER_TIMEOUT)
        try:
            connection.request("POST", f"/2015-03-31/functions/{short}/invocations", body)
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        except OSError as error:
            return _error(502, "ServiceException", f"{short} does not answer: {type(error).__name__}")
        finally:
            connection.close()

    return invoke


def answer_of(outcome: Outcome) -> Answer:
    """A call's outcome in Lambda's words."""
    if outcome.error:
        body: Any = {"errorType": outcome.error, "errorMessage": outcome.trace.strip().rsplit("\n", 1)[-1]}
        return 200, {"X-Amz-Function-Error": "Unhandled"}, json.dumps(body).encode()
    return 200, {}, json.dumps(outcome.result).encode()


def _error(status: int, code: str, message: str) -> Answer:
    return status, {"x-amzn-ErrorType": code}, json.dumps({"message": message}).encode()


class _Handler(BaseHTTPRequestHandler):
    server: LambdaApi

    def do_POST(self) -> None:
        found = _PATH.match(self.path)
        length = self.headers.get("Content-Length") or "0"
        if found is None or not length.isdigit() or int(length) > _MAX_BODY:
            self._send(_error(404, "ResourceNotFoundException", "not a call of the Invoke API"))
            return
        self._send(self.server.invoke(found[1], self.rfile.read(int(length))))

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the functions log for themselves."""

    def _send(self, answer: Answer) -> None:
        status, headers, body = answer
        self.send_response_only(status)
        for name in ("X-Amz-Function-Error", "x-amzn-ErrorType"):
            if name in headers:
                self.send_header(name, headers[name])
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
