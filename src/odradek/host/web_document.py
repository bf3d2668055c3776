"""A document at a web address. Apart from `documents`: a broker that reads none starts without urllib's modules."""

import http.client
import ssl
import time
import urllib.error
import urllib.request
from typing import Any


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """An address that was allowed must not lead to another one."""

    def redirect_request(self, *_arguments: Any, **_named: Any) -> None:
        return None


def read_start(
    document: str | urllib.request.Request, size_bytes: int, timeout_s: float, context: ssl.SSLContext | None = None
) -> bytes:
    """The first bytes of the document at an address, or of the answer to a request; `OSError` when it cannot be
    read."""
    opener = urllib.request.build_opener(_NoRedirects, urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(document, timeout=timeout_s) as response:  # urllib's own errors are OSErrors
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
