"""Web requests that stay at the address that was allowed."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any, **_named: Any) -> None:
        return None


def open_without_redirects(
    request: str | urllib.request.Request, timeout_s: float, context: ssl.SSLContext | None = None
) -> Any:
    """The response, a context manager. urllib's own errors are OSErrors; a redirect is an HTTPError."""
    opener = urllib.request.build_opener(_NoRedirects, urllib.request.HTTPSHandler(context=context))
    return opener.open(request, timeout=timeout_s)
