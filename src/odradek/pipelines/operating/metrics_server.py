"""An HTTP server that answers GET /metrics with the current text."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from odradek.pipelines.operating.metrics_text import CONTENT_TYPE


class MetricsServer:
    """Serves in its own thread; `text` may be replaced at any time."""

    def __init__(self, host: str, port: int) -> None:
        """Raises OSError if the port is in use."""
        self.text = ""
        self._server = ThreadingHTTPServer((host, port), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    @property
    def address(self) -> str:
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        metrics = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                is_found = self.path.split("?")[0] == "/metrics"
                body = metrics.text.encode() if is_found else b"try /metrics\n"
                self.send_response(200 if is_found else 404)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments: object) -> None:
                """Does not log requests."""

        return Handler

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
