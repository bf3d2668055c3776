"""Consumer groups: the list, one group, the reset with its preview, and the form that deletes one."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from odradek.console.cluster import groups
from odradek.console.cluster.watch import GROUP_SERIES, LAGS_S, OLD_AFTER
from odradek.console.context import console_of
from odradek.console.pages.forms import NO_FORM, Form, Routes, make_change, page_number, search_text
from odradek.console.views.figures import FormError, has_words, page_of, parse_number
from odradek.console.views.groups import group_row, group_view, tone_of
from odradek.console.web.rendering import redirect, render
from odradek.conventions.figures import INT64_MAX, count_text, parse_time_ms

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

ROUTES = Routes()
WAYS = (
    ("earliest", "the earliest record"),
    ("latest", "the end: only new records"),
    ("time", "a time"),
    ("offset", "an offset"),
    ("shift", "a number of records forward, or back"),
)
MOST_MOVES = 10_000


@ROUTES.page("/groups")
async def show_list(request: Request) -> Response:
    console = console_of(request)
    search = search_text(request)
    number = page_number(request)
    listed = await console.call(groups.list_groups)
    page = page_of([each for each in listed if has_words(each.name, search)], number)
    members = await console.call(groups.count_members, [each.name for each in page.rows])
    has_lags = await console.run(console.watch.wait_for_lags)
    lags, now_s, lags_age_s = console.watch.group_lags, groups.now_ms() / 1000, console.watch.lags_age_s()
    rows = [group_row(each, members.get(each.name), lags, now_s, lags_age_s) for each in page.rows]
    return render(
        request,
        "groups.html",
        table="groups",
        section="groups",
        page=page.with_rows(rows),
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


@ROUTES.page("/group")
async def show(request: Request, _form: Form = NO_FORM, error: str = "") -> Response:
    console = console_of(request)
    snapshot = await console.run(console.watch.snapshot)
    name = name_of(request)
    number = page_number(request)
    described = await console.call(groups.describe_group, snapshot, name, console.watch.wide_group(name))
    return render(
        request,
        "group.html",
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


@ROUTES.page("/group/reset")
async def show_reset(
    request: Request, form: Form = NO_FORM, error: str = "", moves: list[groups.Move] | None = None
) -> Response:
    return render(
        request,
        "group_reset.html",
        section="groups",
        name=name_of(request),
        ways=WAYS,
        form=form,
        moves=moves,
        plan=json.dumps([[m.topic, m.partition, m.before, m.after] for m in moves or ()]),
        consequence=groups.consequence(moves) if moves else "",
        error=error,
    )


@ROUTES.form("/group/reset/preview", show_reset)
async def preview_reset(request: Request, form: Form) -> Response:
    moves = await console_of(request).call(groups.plan_reset, name_of(request), parse_goal(form))
    return await show_reset(request, form, moves=moves)


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


@ROUTES.form("/group/reset", show_reset)
async def apply_reset(request: Request, form: Form) -> Response:
    name = name_of(request)
    try:
        moves = parse_plan(form.text("plan"))
        counted = count_text(len(moves), "offset")
        await make_change(request, f"reset {counted} of group {name}", groups.apply_reset, name, moves)
    finally:
        console_of(request).watch.forget_lags(name)
    return redirect(request, f"/group?{urlencode({'name': name})}", f"Reset {counted} of group {name}.")


@ROUTES.form("/group/delete", show)
async def delete(request: Request, form: Form) -> Response:
    name = name_of(request)
    if form.text("confirmation") != name.strip():
        raise FormError(f"nothing was deleted: type the name of the group, {name}, to confirm")
    await make_change(request, f"delete group {name}", groups.delete_group, name)
    return redirect(request, "/groups", f"Deleted group {name}.")
