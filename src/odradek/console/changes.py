"""A form that changes something: its token is checked before anything is read from it, and the change is logged."""

from __future__ import annotations

import hmac
import logging
from typing import TYPE_CHECKING

from odradek.console.forms import read_form
from odradek.console.safety import TOKEN_FIELD, TOKEN_HEADER

if TYPE_CHECKING:
    from starlette.requests import Request

    from odradek.console.forms import Form

AUDIT = logging.getLogger("odradek.console.audit")


class Forbidden(Exception):
    """A form without the token of the browser's session."""


async def checked_form(request: Request) -> Form:
    """The form of a change; Forbidden without the token that the console's own pages carry."""
    form = await read_form(request)
    token = form.text(TOKEN_FIELD) or request.headers.get(TOKEN_HEADER, "")
    expected: str = request.app.state.tokens.token_of(request.state.session)
    if not hmac.compare_digest(token.encode(), expected.encode()):
        raise Forbidden("the form has no valid token; reload the page and try again")
    return form


def log_change(request: Request, change: str) -> None:
    """One line for each change that the cluster has accepted."""
    client = request.client.host if request.client is not None else "unknown"
    AUDIT.info("%s: %s", client, change.encode("unicode_escape").decode())
