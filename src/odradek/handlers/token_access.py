"""Who may create, renew, expire and describe delegation tokens: clients that have authenticated, but not by a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.security.principals import ANONYMOUS

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


def may_use_tokens(context: RequestContext) -> bool:
    """Clients of listeners without authentication are anonymous."""
    principal = context.connection.principal
    return principal != ANONYMOUS and not principal.is_token_authenticated
