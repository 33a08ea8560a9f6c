"""A bus over HTTP that keeps what it takes: PutEvents only, fast, and refusing entries when told."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any


class EventBus(ThreadingHTTPServer):
    """``taken`` holds (detail-type, detail). ``refuse`` is asked with the count of entries seen so far."""

    daemon_threads = True

    def __init__(self, refuse: Callable[[int], bool] = lambda _: False) -> None:
        self.taken: list[tuple[str, dict[str, Any]]] = []
        self.refused = 0
        self.refuse = refuse
        self._seen = 0
        self._lock = Lock()
        super().__init__(("127.0.0.1", 0), _Handler)
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def put(self, entries: list[dict[str, str]]) -> dict[str, Any]:
        answers = []
        with self._lock:
            for entry in entries:
                self._seen += 1
                if self.refuse(self._seen):
                    self.refused += 1
                    answers.append({"ErrorCode": "ThrottlingException", "ErrorMessage": "slow down"})
                    continue
                self.taken.append((entry["DetailType"], json.loads(entry["Detail"])))
                answers.append({"EventId": str(self._seen)})
        return {"FailedEntryCount": sum("ErrorCode" in answer for answer in answers), "Entries": answers}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: EventBus

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps(self.server.put(body["Entries"])).encode()
        self.send_response_only(200)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass
