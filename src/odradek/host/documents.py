"""Small documents from a file or a web address, such as the public keys of a token issuer. Blocks: runs on a worker."""

import urllib.parse

LARGEST_DOCUMENT_BYTES = 1024 * 1024
TIMEOUT_S = 10.0


def read_document(url: str) -> bytes:
    """`OSError` when it cannot be read, or is too large."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file":
        with open(urllib.parse.unquote(parts.path), "rb") as file:
            data = file.read(LARGEST_DOCUMENT_BYTES + 1)
    elif parts.scheme in ("http", "https"):
        from odradek.host.web_document import read_start  # noqa: PLC0415 - few brokers read from the web

        data = read_start(url, LARGEST_DOCUMENT_BYTES + 1, TIMEOUT_S)
    else:
        raise OSError(f"{parts.scheme} addresses are not supported")
    if len(data) > LARGEST_DOCUMENT_BYTES:
        raise OSError(f"the document is larger than {LARGEST_DOCUMENT_BYTES} bytes")
    return bytes(data)
