"""Consumer groups: the list, one group, the reset with its preview, and the form that deletes one."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.routing import Route

from odradek.console.cluster import groups
from odradek.console.cluster.connection import Failure, parse_time_ms
from odradek.console.cluster.pacing import OLD_AFTER
from odradek.console.cluster.watch import GROUP_SERIES, LAGS_S
from odradek.console.context import console_of
from odradek.console.pages.changes import checked_form, make_change
from odradek.console.pages.forms import Form, FormError, parse_number
from odradek.console.pages.listing import choose_template, page_number, search_text
from odradek.console.views.figures import plural
from odradek.console.views.groups import find_groups, group_row, group_view, tone_of
from odradek.console.views.paging import Page, page_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

INT64_MAX = 2**63 - 1
WAYS = (
    ("earliest", "the earliest record"),
    ("latest", "the end: only new records"),
    ("time", "a time"),
    ("offset", "an offset"),
    ("shift", "a number of records forward, or back"),
)
MOST_MOVES = 10_000


async def show_list(request: Request) -> Response:
    console = console_of(request)
    search = search_text(request)
    number = page_number(request)
    listed = await console.call(groups.list_groups)
    page = page_of(find_groups(listed, search), number)
    members = await console.call(groups.count_members, [each.name for each in page.rows])
    has_lags = await console.run(console.watch.wait_for_lags)
    lags, now_s, lags_age_s = console.watch.group_lags, groups.now_ms() / 1000, console.watch.lags_age_s()
    rows = [group_row(each, members.get(each.name), lags, now_s, lags_age_s) for each in page.rows]
    template = choose_template(request, "groups", "groups")
    return console.renderer.page(
        request,
        template,
        section="groups",
        page=Page(rows, page.number, page.pages, page.total),
        search=search,
        has_groups=bool(listed),
        has_lags=has_lags,
        old_lags_ms=lags_age_s * 1000 if lags_age_s > OLD_AFTER * LAGS_S else 0,
        most_watched=GROUP_SERIES if len(listed) > GROUP_SERIES else 0,
        tone_of=tone_of,
    )


def name_of(request: Request) -> str:
    name = request.query_params.get("name", "")
    if not name:
        raise FormError("name a group")
    return name


def address_of(name: str, page: str = "/group") -> str:
    return f"{page}?{urlencode({'name': name})}"


async def show(request: Request, error: str = "") -> Response:
    console = console_of(request)
    snapshot = await console.run(console.watch.snapshot)
    name = name_of(request)
    number = page_number(request)
    described = await console.call(groups.describe_group, snapshot, name, console.watch.wide_group(name))
    return console.renderer.page(
        request,
        "group.html",
        422 if error else 200,
        section="groups",
        group=described.group,
        denial=described.denial,
        view=group_view(described, console.watch.group_lags, groups.now_ms() / 1000, console.watch.lags_age_s()),
        page=page_of(described.lags.listed, number),
        age_ms=age_ms(described.lags.read_at_s),
        error=error,
    )


def age_ms(read_at_s: float | None) -> int | None:
    return None if read_at_s is None else max(int((time.monotonic() - read_at_s) * 1000), 0)


def parse_goal(form: Form) -> groups.ResetGoal:
    """FormError for a way or a number that cannot be read."""
    way, text = form.text("way"), form.text("at")
    if way not in dict(WAYS):
        raise FormError("choose where to reset to")
    topics = tuple(filter(None, (each.strip() for each in form.text("topics").replace("\n", " ").split())))
    if way == "time":
        try:
            return groups.ResetGoal(way, parse_time_ms(text, groups.now_ms()), topics)
        except (ValueError, OverflowError):
            raise FormError(f"{text[:60]!r} is not a time; write 2026-01-31T12:00, epoch ms, or -1h") from None
    least = 0 if way == "offset" else -INT64_MAX
    number = parse_number(text, way, least, INT64_MAX) if way in ("offset", "shift") else 0
    return groups.ResetGoal(way, number, topics)


async def show_reset(request: Request) -> Response:
    return await _reset_page(request, Form({}))


async def _reset_page(
    request: Request, form: Form, moves: list[groups.Move] | None = None, error: str = ""
) -> Response:
    console = console_of(request)
    name = name_of(request)
    return console.renderer.page(
        request,
        "group_reset.html",
        422 if error else 200,
        section="groups",
        name=name,
        ways=WAYS,
        form=form,
        moves=moves,
        plan=json.dumps([[m.topic, m.partition, m.before, m.after] for m in moves or ()]),
        consequence=groups.consequence(moves) if moves else "",
        error=error,
    )


async def preview_reset(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    try:
        moves = await console.call(groups.plan_reset, name_of(request), parse_goal(form))
    except (Failure, FormError) as failure:
        text = str(failure)
        return await _reset_page(request, form, error=text)
    return await _reset_page(request, form, moves)


def parse_plan(text: str) -> list[groups.Move]:
    """The moves of a preview, which its form carries."""
    try:
        rows = json.loads(text)
        moves = [groups.Move(str(t), int(p), None if b is None else int(b), int(a), int(a)) for t, p, b, a in rows]
    except (ValueError, TypeError):
        raise FormError("the preview cannot be read; look at a new one") from None
    if not 0 < len(moves) <= MOST_MOVES or any(not 0 <= move.after <= INT64_MAX for move in moves):
        raise FormError("the preview is empty or too long; look at a new one")
    return moves


async def apply_reset(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    name = name_of(request)
    try:
        moves = parse_plan(form.text("plan"))
        await make_change(
            request, f"reset {plural(len(moves), 'offset')} of group {name}", groups.apply_reset, name, moves
        )
    except (Failure, FormError) as failure:
        text = str(failure)
        return await _reset_page(request, form, error=text)
    finally:
        console.watch.forget_lags(name)
    return console.renderer.redirect(address_of(name), f"Reset {plural(len(moves), 'offset')} of group {name}.")


async def delete(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    name = name_of(request)
    if form.text("confirmation") != name.strip():
        return await show(request, f"nothing was deleted: type the name of the group, {name}, to confirm")
    try:
        await make_change(request, f"delete group {name}", groups.delete_group, name)
    except Failure as failure:
        return await show(request, failure.message)
    return console.renderer.redirect("/groups", f"Deleted group {name}.")


ROUTES = [
    Route("/groups", show_list),
    Route("/group", show),
    Route("/group/reset", show_reset),
    Route("/group/reset/preview", preview_reset, methods=["POST"]),
    Route("/group/reset", apply_reset, methods=["POST"]),
    Route("/group/delete", delete, methods=["POST"]),
]
