"""Documents come from files and web addresses, are bounded, and no address leads to another."""

import contextlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from odradek.host.documents import LARGEST_DOCUMENT_BYTES, read_document
from odradek.host.web_document import read_start


class Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/keys")
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        if self.path == "/slow":
            with contextlib.suppress(OSError):
                for _ in range(40):
                    self.wfile.write(b"x")
                    time.sleep(0.05)  # a measured time
            return
        with contextlib.suppress(OSError):  # the client stops reading what is too large
            self.wfile.write(b"x" * (LARGEST_DOCUMENT_BYTES + 1) if self.path == "/large" else b"keys")

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_documents_are_read(address: str, tmp_path: Path) -> None:
    file = tmp_path / "with space"
    file.write_bytes(b"in a file")
    assert read_document(f"{address}/keys") == b"keys"
    assert read_document(file.as_uri()) == b"in a file"


@pytest.mark.parametrize("path", ["/moved", "/large"])
def test_redirects_and_large_documents_are_refused(address: str, path: str) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - of urllib or ours
        read_document(address + path)


def test_a_document_that_arrives_byte_by_byte_has_a_deadline(address: str) -> None:
    """It would occupy a worker for as long as its server likes."""
    with pytest.raises(TimeoutError, match="longer than"):
        read_start(f"{address}/slow", 1000, 0.2)


def test_other_addresses_are_refused(tmp_path: Path) -> None:
    for url in ("ftp://127.0.0.1/keys", (tmp_path / "missing").as_uri()):
        with pytest.raises(OSError):  # noqa: PT011
            read_document(url)
