"""Small documents from a file or a web address, such as the public keys of a token issuer. Blocks: runs on a worker."""

import http.client
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

LARGEST_DOCUMENT_BYTES = 1024 * 1024
TIMEOUT_S = 10.0


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """An address that was allowed must not lead to another one."""

    def redirect_request(self, *_arguments: Any, **_named: Any) -> None:
        return None


def read_document(url: str) -> bytes:
    """`OSError` when it cannot be read, or is too large."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file":
        with open(urllib.parse.unquote(parts.path), "rb") as file:
            data = file.read(LARGEST_DOCUMENT_BYTES + 1)
    elif parts.scheme in ("http", "https"):
        opener = urllib.request.build_opener(_NoRedirects)
        try:
            with opener.open(url, timeout=TIMEOUT_S) as response:  # urllib's own errors are OSErrors
                data = response.read(LARGEST_DOCUMENT_BYTES + 1)
        except http.client.HTTPException as problem:
            raise OSError(f"no HTTP server answers there: {problem!r}") from problem
    else:
        raise OSError(f"{parts.scheme} addresses are not supported")
    if len(data) > LARGEST_DOCUMENT_BYTES:
        raise OSError(f"the document is larger than {LARGEST_DOCUMENT_BYTES} bytes")
    return bytes(data)
