"""Quotas: the list, and the forms that set and remove them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from odradek.console.cluster import access
from odradek.console.cluster.connection import Failure
from odradek.console.context import console_of
from odradek.console.pages.changes import checked_form, make_change
from odradek.console.pages.forms import Form, FormError
from odradek.console.pages.listing import choose_template, list_or_denial, page_number, search_text
from odradek.console.views import access as views
from odradek.console.views.paging import page_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

LARGEST_NAME = 255


async def show(request: Request) -> Response:
    return await _page(request, Form({}))


async def _page(request: Request, form: Form, error: str = "") -> Response:
    console = console_of(request)
    search = search_text(request)
    number = page_number(request)
    no_quotas: dict[access.Entity, dict[str, float]] = {}
    quotas, denial = await list_or_denial(console, no_quotas, access.list_quotas)
    template = choose_template(request, "access_quotas", "quotas")
    return console.renderer.page(
        request,
        template,
        422 if error else 200,
        section="access",
        tab="quotas",
        page=page_of(views.quota_rows(quotas, search), number),
        has_quotas=bool(quotas),
        search=search,
        entity_types=views.ENTITY_TYPES,
        keys=list(access.UNITS.items()),
        form=form,
        denial=denial,
        error=error,
    )


def parse_limit(text: str) -> float:
    try:
        return float(text.replace(",", "").replace(" ", ""))
    except ValueError:
        raise FormError(f"{text[:60]!r} is not a number") from None


async def set_quota(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    try:
        kinds = [kind for kind, _ in views.ENTITY_TYPES]
        names = {kind: form.text(kind)[:LARGEST_NAME] for kind in kinds}
        entity = views.new_entity(names, {kind: form.has(f"{kind}-default") for kind in kinds})
        key, limit = form.text("key"), parse_limit(form.text("limit"))
        change = f"quota of {access.entity_text(entity)}: {key} = {limit:g}"
        await make_change(request, change, access.set_quota, entity, key, limit)
    except (Failure, FormError, views.AccessFormError) as problem:
        return await _page(request, form, str(problem))
    notice = f"{access.entity_text(entity)}: {key} = {views.quota_text(key, limit)}."
    return console.renderer.redirect("/access/quotas", notice)


async def remove(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    try:
        entity, key = views.parse_entity(form.text("entity")), form.text("key")
        change = f"remove quota {key} of {access.entity_text(entity)}"
        await make_change(request, change, access.set_quota, entity, key, None)
    except (Failure, views.AccessFormError) as problem:
        return await _page(request, form, str(problem))
    return console.renderer.redirect("/access/quotas", f"Removed {key} of {access.entity_text(entity)}.")


ROUTES = [
    Route("/access/quotas", show),
    Route("/access/quotas", set_quota, methods=["POST"]),
    Route("/access/quotas/remove", remove, methods=["POST"]),
]
