"""Web requests that stay at the address that was allowed."""

from __future__ import annotations

import urllib.request
from typing import Any


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any, **_named: Any) -> None:
        return None


def open_without_redirects(request: str | urllib.request.Request, timeout_s: float) -> Any:
    """The response, a context manager. urllib's own errors are OSErrors; a redirect is an HTTPError."""
    return urllib.request.build_opener(_NoRedirects).open(request, timeout=timeout_s)
