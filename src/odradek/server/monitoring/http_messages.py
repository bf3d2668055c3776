"""The little of HTTP/1.1 that a page of metrics needs: GET and HEAD without a body, one request for each connection.
Pure: bytes in, bytes out."""

from __future__ import annotations

import re
from typing import NamedTuple

LARGEST_HEAD_BYTES = 8192
END_OF_HEAD = b"\r\n\r\n"
TEXT = "text/plain; charset=utf-8"

_REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) (/[!-~]{0,2000}) HTTP/1\.[01]")
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class HttpRequest(NamedTuple):
    path: str
    is_head: bool


class HttpResponse(NamedTuple):
    status: int
    body: bytes
    content_type: str = TEXT

    def encode(self, *, is_head: bool = False) -> bytes:
        """Encodes the response, for HEAD without its body. The connection closes after every response."""
        lines = [
            f"HTTP/1.1 {self.status} {_REASONS[self.status]}",
            f"Content-Type: {self.content_type}",
            f"Content-Length: {len(self.body)}",
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
            "Connection: close",
            *(["Allow: GET, HEAD"] if self.status == 405 else []),
        ]
        return "\r\n".join([*lines, "", ""]).encode() + (b"" if is_head else self.body)


def refusal(status: int, reason: str) -> HttpResponse:
    return HttpResponse(status, f"{reason}\n".encode())


def read_request(received: bytes) -> HttpRequest | HttpResponse | None:
    """The request, or the response that refuses it; None while its head is incomplete."""
    end = received.find(END_OF_HEAD)
    if end < 0:
        if len(received) > LARGEST_HEAD_BYTES:
            return refusal(431, f"the head of a request may have {LARGEST_HEAD_BYTES} bytes")
        return None
    line = received[:end].split(b"\r\n", 1)[0]
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        return refusal(400, "this is not a request of HTTP/1.1")
    if match[1] not in (b"GET", b"HEAD"):
        return refusal(405, "only GET and HEAD are served")
    return HttpRequest(match[2].decode("ascii").partition("?")[0], match[1] == b"HEAD")
