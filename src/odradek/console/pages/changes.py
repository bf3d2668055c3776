"""A form that changes something: its token is checked before anything is read from it, and each change is logged with
its outcome, those that fail or time out included."""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import logging
import re
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from odradek.console import context
from odradek.console.cluster.connection import Cluster, Failure
from odradek.console.context import console_of
from odradek.console.pages.forms import read_form
from odradek.console.web.safety import TOKEN_FIELD, TOKEN_HEADER

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from typing import Any

    from starlette.requests import Request

    from odradek.console.pages.forms import Form

AUDIT = logging.getLogger("odradek.console.audit")

P = ParamSpec("P")
T = TypeVar("T")


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


async def make_change(
    request: Request,
    change: str,
    function: Callable[Concatenate[Cluster, P], T],
    *arguments: P.args,
    **named: P.kwargs,
) -> T:
    """Call a function that changes the cluster, and log the change with its outcome. A change that is not answered in
    time may happen later: then a second line has its outcome."""

    def log_late(future: Future[Any]) -> None:
        log_change(request, f"{change}: {_outcome(future)}, after the page had been answered")

    try:
        result = await console_of(request).call_with(log_late, function, *arguments, **named)
    except Failure as failure:
        log_change(request, f"{change}: failed: {failure.message}")
        raise
    except TimeoutError:
        log_change(request, f"{change}: unknown: no answer within {context.CALL_TIMEOUT_S:g} s")
        raise
    except BaseException as error:
        log_change(request, f"{change}: unknown: {type(error).__name__}")
        raise
    log_change(request, f"{change}: done")
    return result


def _outcome(future: Future[Any]) -> str:
    if future.cancelled():
        return "not begun"
    error = future.exception()
    if error is None:
        return "done"
    return f"failed: {error.message if isinstance(error, Failure) else type(error).__name__}"


def log_change(request: Request, change: str) -> None:
    """One line: the client's address, the user if there is a login, and the change."""
    client = client_address(request)
    user = getattr(request.state, "user", "")
    text = f"{client} {user}: {change}" if user else f"{client}: {change}"
    AUDIT.info("%s", text.encode("unicode_escape").decode())


def client_address(request: Request) -> str:
    """The peer's address; behind a proxy the one that the proxy has appended last, in whichever line. A text that is
    no address is not used: the limit of an address would not hold for it."""
    if request.app.state.settings.is_behind_proxy:
        last = ",".join(request.headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
        with_port = re.fullmatch(r"\[(.+)\](?::\d+)?|([\d.]+):\d+", last)
        host = last if with_port is None else with_port[1] or with_port[2]
        with contextlib.suppress(ValueError):
            return str(ipaddress.ip_address(host))
    return request.client.host if request.client is not None else "unknown"
