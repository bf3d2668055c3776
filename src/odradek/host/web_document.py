"""A document at a web address. Apart from `documents`: a broker that reads none starts without urllib's modules."""

import http.client
import ssl
import time
import urllib.error
import urllib.request

from odradek.conventions.web_requests import open_without_redirects


def read_start(
    document: str | urllib.request.Request, size_bytes: int, timeout_s: float, context: ssl.SSLContext | None = None
) -> bytes:
    """The first bytes of the document at an address, or of the answer to a request; `OSError` when it cannot be
    read."""
    try:
        with open_without_redirects(document, timeout_s, context) as response:
            data, deadline = bytearray(), time.monotonic() + timeout_s  # urllib's timeout is that of each receive
            while len(data) < size_bytes and (part := response.read1(size_bytes - len(data))):
                data += part
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the document took longer than {timeout_s:g} s")
            return bytes(data)
    except urllib.error.HTTPError as problem:
        problem.close()
        raise
    except http.client.HTTPException as problem:
        raise OSError(f"no HTTP server answers there: {problem!r}") from problem
