"""A document at a web address. Apart from `documents`: a broker that reads none starts without urllib's modules."""

import http.client
import time

from odradek.conventions.web_requests import open_without_redirects


def read_start(url: str, size_bytes: int, timeout_s: float) -> bytes:
    """The first bytes of the document; `OSError` when it cannot be read."""
    try:
        with open_without_redirects(url, timeout_s) as response:
            data, deadline = bytearray(), time.monotonic() + timeout_s  # urllib's timeout is that of each receive
            while len(data) < size_bytes and (part := response.read1(size_bytes - len(data))):
                data += part
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the document took longer than {timeout_s:g} s")
            return bytes(data)
    except http.client.HTTPException as problem:
        raise OSError(f"no HTTP server answers there: {problem!r}") from problem
