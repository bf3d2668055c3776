"""The login, by a form or with an OpenID Connect provider, and the logout.

A new session gets a new id, so that an id that another has set in the browser is worth nothing. All refusals of a user
and a password have the same text, whether the user exists or not.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from odradek.console.cluster import connection as identity
from odradek.console.login.logins import LOGIN_PATH, LOGINS_AT_ONCE, Logins, TooManyLogins, local_path
from odradek.console.login.oidc import LoginRefused, TokenGrant, authorization_address
from odradek.console.pages.requests import PageRequest, Routes, client_address
from odradek.console.settings import OidcLogin, SaslLogin
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.console.cluster.connection import Cluster

ROUTES = Routes()
T = TypeVar("T")

LARGEST_USER = 255
LARGEST_PASSWORD = 4096
LOGIN_TIMEOUT_S = 30.0
WRONG = "The user or the password is wrong."
BUSY = "Too many logins are running; try again in a moment."
FULL = "Too many users are logged in; try again later."


class _Busy(Exception):
    pass


def _logins_of(request: PageRequest) -> Logins:
    logins: Logins | None = request.app.state.logins
    if logins is None:
        raise HTTPException(404)
    return logins


def _page(
    request: PageRequest, error: str = "", status: int = 200, *, user: str = "", next_path: str = "/"
) -> Response:
    method = _logins_of(request).method
    issuer = urlsplit(method.issuer).netloc if isinstance(method, OidcLogin) else ""
    request.error = error
    return request.render("login.html", status, issuer=issuer, name=user[:LARGEST_USER], next_path=next_path)


@ROUTES.page("/login")
async def show(request: PageRequest) -> Response:
    next_path = local_path(request.query_params.get("next", "/"))
    if getattr(request.state, "user", ""):
        return RedirectResponse(next_path, 303)
    return _page(request, next_path=next_path)


async def _run(logins: Logins, function: Callable[[], T]) -> T:
    """Runs a function on a thread. Raises _Busy if as many logins run as are allowed."""
    if logins.running >= LOGINS_AT_ONCE:
        raise _Busy
    logins.running += 1
    future = asyncio.get_running_loop().run_in_executor(logins.threads.calls, function)

    def end(done: asyncio.Future[T]) -> None:
        logins.running -= 1
        if not done.cancelled():
            done.exception()

    future.add_done_callback(end)
    async with asyncio.timeout(LOGIN_TIMEOUT_S):
        return await asyncio.shield(future)


@ROUTES.page("/login", method="POST")
async def log_in(request: PageRequest) -> Response:
    logins = _logins_of(request)
    method = logins.method
    if not isinstance(method, SaslLogin):
        raise HTTPException(405)
    form = await request.read_form()
    user, password = form.text("user"), form.raw("password")
    next_path = local_path(form.text("next", "/"))

    def refuse(text: str, status: int) -> Response:
        request.log(f"login of {user[:LARGEST_USER]} refused: {text}")
        return _page(request, text, status, user=user, next_path=next_path)

    is_valid = 0 < len(user) <= LARGEST_USER and user.isprintable() and 0 < len(password) <= LARGEST_PASSWORD
    if not is_valid or "\0" in password:
        return refuse(WRONG, 401)
    address = client_address(request)
    admission = logins.attempts.begin(address, user)
    if admission.refused_s:
        return refuse(f"Too many failed logins; try again in {math.ceil(admission.refused_s)} seconds.", 429)
    await asyncio.sleep(admission.delay_s)
    try:
        cluster = await _run(logins, lambda: identity.log_in_as(logins.cluster, method.mechanism, user, password))
    except identity.BadCredentials:
        return refuse(WRONG, 401)
    except (_Busy, TimeoutError, Failure) as failure:
        logins.attempts.forgive(address, user)
        if isinstance(failure, _Busy):
            return refuse(BUSY, 503)
        return refuse(failure.message if isinstance(failure, Failure) else "The cluster does not answer.", 502)
    logins.attempts.forgive(address, user)
    return _begin(request, user, password, cluster, next_path)


def _begin(
    request: PageRequest, user: str, secret: str, cluster: Cluster, next_path: str, grant: TokenGrant | None = None
) -> Response:
    logins = _logins_of(request)
    logins.sessions.end(request.state.session)  # of the user who was logged in in this browser
    try:
        session = logins.begin(user, secret, cluster, grant)
    except TooManyLogins:
        return _page(request, FULL, 503, user=user, next_path=next_path)
    request.state.session = session.id
    request.state.user = user
    request.log("logged in")
    return RedirectResponse(next_path, 303)


@ROUTES.page("/login/oidc")
async def begin_oidc(request: PageRequest) -> Response:
    logins = _logins_of(request)
    if logins.provider is None:
        raise HTTPException(404)
    settings = request.app.state.settings
    base = settings.public_url or f"{'https' if settings.is_https else 'http'}://{request.headers['host']}"
    try:
        provider = await _run(logins, logins.provider.discover)
    except (LoginRefused, _Busy, TimeoutError) as problem:
        return _page(request, str(problem) or BUSY, 502)
    state, pending = logins.pending.begin(
        request.state.session,
        local_path(request.query_params.get("next", "/")),
        f"{base.rstrip('/')}/login/callback",
        client_address(request),
    )
    return RedirectResponse(authorization_address(provider, logins.provider.login, state, pending), 303)


@ROUTES.page("/login/callback")
async def finish_oidc(request: PageRequest) -> Response:
    logins = _logins_of(request)
    provider = logins.provider
    if provider is None:
        raise HTTPException(404)
    fields = request.query_params
    try:
        pending = logins.pending.take(fields.get("state", ""), request.state.session)
        if "error" in fields or not fields.get("code"):
            raise LoginRefused(f"the provider refused the login ({fields.get('error', 'no code')[:100]})")
        if "iss" in fields and fields["iss"] != provider.login.issuer:
            raise LoginRefused("the answer is that of another provider")
        grant = await _run(logins, lambda: provider.exchange(fields["code"], pending))
        expires_s = time.time() + grant.lifetime_s
        cluster = identity.cluster_of_token(logins.cluster, grant.user, grant.access_token, expires_s)
        await _run(logins, lambda: identity.log_in(cluster))
    except (LoginRefused, Failure, _Busy, TimeoutError) as problem:
        text = str(problem) or BUSY
        request.log(f"login refused: {text}")
        return _page(request, text, 401)
    return _begin(request, grant.user, grant.access_token, cluster, pending.next, grant)


@ROUTES.page("/logout", method="POST")
async def log_out(request: PageRequest) -> Response:
    await request.read_form()
    request.log("logged out")
    _logins_of(request).sessions.end(request.state.session)
    request.state.session = request.app.state.tokens.new_session()
    request.state.user = ""
    return request.redirect(LOGIN_PATH, "You are logged out.")
