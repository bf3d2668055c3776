"""Users of the cluster: the list, and the forms that add one, change a password and remove one."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from starlette.routing import Route

from odradek.console.cluster import access
from odradek.console.cluster.connection import Failure
from odradek.console.context import console_of
from odradek.console.pages.changes import checked_form, make_change
from odradek.console.pages.forms import FormError
from odradek.console.pages.listing import choose_template, list_or_denial, page_number, search_text
from odradek.console.views.access import user_rows
from odradek.console.views.paging import page_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from odradek.console.login.logins import Logins

LARGEST_NAME = 255
LARGEST_PASSWORD = 4096


async def show(request: Request, error: str = "") -> Response:
    console = console_of(request)
    search = search_text(request)
    number = page_number(request)
    no_credentials: list[access.Credential] = []
    credentials, denial = await list_or_denial(console, no_credentials, access.list_users)
    template = choose_template(request, "access_users", "users")
    return console.renderer.page(
        request,
        template,
        422 if error else 200,
        section="access",
        tab="users",
        page=page_of(user_rows(credentials, search), number),
        has_users=bool(credentials),
        search=search,
        mechanisms=access.MECHANISMS,
        denial=denial,
        error=error,
    )


def parse_name(text: str) -> str:
    if not 0 < len(text) <= LARGEST_NAME or not text.isprintable():
        raise FormError(f"the name of a user has 1 to {LARGEST_NAME} printable characters")
    return text


def parse_password(first: str, second: str) -> str:
    """The password of a form, which has it twice."""
    if first != second:
        raise FormError("the two passwords differ")
    if not 0 < len(first) <= LARGEST_PASSWORD:
        raise FormError(f"a password has 1 to {LARGEST_PASSWORD} characters")
    return first


async def add(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    try:
        name = parse_name(form.text("name"))
        password = parse_password(form.raw("password") or "", form.raw("again") or "")
        mechanisms = [each for each in access.MECHANISMS if form.has(each)]
        if not mechanisms:
            raise FormError("choose a mechanism")
        change = f"add user {name} with {', '.join(mechanisms)}"
        await make_change(request, change, access.add_user, name, password, mechanisms)
    except (Failure, FormError) as problem:
        return await show(request, str(problem))
    return console.renderer.redirect("/access", f"Added user {name}.")


async def change_password(request: Request) -> Response:
    """The user logs in again everywhere: the connections of the sessions have the former password."""
    console = console_of(request)
    form = await checked_form(request)
    try:
        name = parse_name(form.text("name"))
        password = parse_password(form.raw("password") or "", form.raw("again") or "")
        await make_change(request, f"change the password of user {name}", access.change_password, name, password)
    except (Failure, FormError) as problem:
        return await show(request, str(problem))
    if _end_sessions(request, name):
        return console.renderer.redirect("/login", "Your password was changed. Log in with the new one.")
    return console.renderer.redirect("/access", f"Changed the password of user {name}.")


async def remove(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    name = form.text("name")
    if form.text("confirmation") != name:
        return await show(request, f"nothing was removed: type the name of the user, {name}, to confirm")
    try:
        await make_change(request, f"remove user {name}", access.remove_user, parse_name(name))
    except (Failure, FormError) as problem:
        return await show(request, str(problem))
    if _end_sessions(request, name):
        return console.renderer.redirect("/login", "Your user was removed.")
    return console.renderer.redirect("/access", f"Removed user {name}.")


def _end_sessions(request: Request, user: str) -> bool:
    """End all sessions of a user; whether the session of this request is one of them."""
    logins = cast("Logins | None", request.app.state.logins)
    if logins is not None:
        logins.sessions.end_of_user(user)
    return bool(user) and getattr(request.state, "user", "") == user


async def show_user(request: Request) -> Response:
    """The forms for one user."""
    console = console_of(request)
    name = parse_name(request.query_params.get("name", ""))
    return console.renderer.page(request, "access_user.html", section="access", tab="users", name=name)


ROUTES = [
    Route("/access", show),
    Route("/access/user", show_user),
    Route("/access/users", add, methods=["POST"]),
    Route("/access/users/password", change_password, methods=["POST"]),
    Route("/access/users/remove", remove, methods=["POST"]),
]
