"""The HTTP server takes GET and HEAD, refuses the rest, and never waits for more than a bounded head."""

import http.client
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.server.monitoring.http_messages import (
    LARGEST_HEAD_BYTES,
    HttpRequest,
    HttpResponse,
    read_request,
    refusal,
)


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", HttpRequest("/metrics", False)),
        (b"HEAD /ready?x=1 HTTP/1.0\r\n\r\n", HttpRequest("/ready", True)),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n", None),
        (b"", None),
    ],
)
def test_requests(received: bytes, expected: HttpRequest | None) -> None:
    assert read_request(received) == expected


@pytest.mark.parametrize(
    ("received", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"DELETE / HTTP/1.1\r\n\r\n", 405),
        (b"GET metrics HTTP/1.1\r\n\r\n", 400),
        (b"GET /metrics HTTP/2.0\r\n\r\n", 400),
        (b"GET /me trics HTTP/1.1\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET /" + b"x" * 3000 + b" HTTP/1.1\r\n\r\n", 400),
        (b"x" * (LARGEST_HEAD_BYTES + 1), 431),
    ],
)
def test_refusals(received: bytes, status: int) -> None:
    response = read_request(received)
    assert isinstance(response, HttpResponse)
    assert response.status == status


@given(st.binary(max_size=200))
def test_any_bytes_are_a_request_a_refusal_or_incomplete(received: bytes) -> None:
    found = read_request(received)
    assert (found is None) == (b"\r\n\r\n" not in received)


@pytest.mark.parametrize("response", [HttpResponse(200, b"a\nb\n"), refusal(405, "no"), refusal(404, "none")])
def test_responses_are_read_by_another_implementation(response: HttpResponse) -> None:
    class Connection:
        def makefile(self, *_: object) -> io.BytesIO:
            return io.BytesIO(response.encode())

    read = http.client.HTTPResponse(Connection())  # type: ignore[arg-type]  # it uses makefile only
    read.begin()
    assert (read.status, read.read()) == (response.status, response.body)
    assert read.getheader("Connection") == "close"
    assert (read.getheader("Allow") is not None) == (response.status == 405)
    assert response.encode(is_head=True).endswith(b"\r\n\r\n")
