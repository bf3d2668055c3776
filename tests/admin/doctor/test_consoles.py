"""Only a console that serves everybody is found: not another web server, not a console with a login."""

from __future__ import annotations

import contextlib
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import odradek.console
from odradek.admin.doctor.security_facts import TITLE, open_console
from tests.commands import run_odradek

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = "<!doctype html><title>Overview · Odradek</title>".encode()


@contextlib.contextmanager
def web_server(status: int, body: bytes, certificate: Path | None = None) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_served = self.path == "/" and self.headers["Host"] == "localhost"
            self.send_response(status if is_served else 403)
            self.send_header("Location", "/login")
            self.end_headers()
            self.wfile.write(body if is_served else b"")

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "is_found"), [(200, PAGE, True), (200, b"<title>Something</title>", False), (303, PAGE, False)]
)
def test_a_console_without_a_login_is_found(status: int, body: bytes, is_found: bool) -> None:
    with web_server(status, body) as port:
        assert open_console("127.0.0.1", port) == (f"http://127.0.0.1:{port}/" if is_found else None)


def test_a_console_with_tls_is_found(tmp_path: Path) -> None:
    assert run_odradek("secure", "init", str(tmp_path / "certs")).code == 0
    with web_server(200, PAGE, tmp_path / "certs" / "broker.pem") as port:
        assert open_console("127.0.0.1", port) == f"https://127.0.0.1:{port}/"


def test_nothing_is_found_where_nothing_listens() -> None:
    with web_server(200, PAGE) as port:
        pass
    assert open_console("127.0.0.1", port) is None


def test_pages_of_the_console_have_the_title() -> None:
    folder = Path(odradek.console.__file__).parent
    assert TITLE in (folder / "templates" / "base.html").read_bytes()
