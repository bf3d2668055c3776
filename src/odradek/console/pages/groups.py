"""Consumer groups: the list, one group, the reset with its preview, and the form that deletes one."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from odradek.admin.groups import delete_group, list_groups
from odradek.admin.resets import Goal, Move, alter, consequence
from odradek.console.cluster import groups
from odradek.console.cluster.watch import GROUP_SERIES, LAGS_S, OLD_AFTER
from odradek.console.pages.requests import Form, PageRequest, Routes
from odradek.console.views.figures import FormError, has_words, parse_number
from odradek.console.views.groups import assignment_text, group_row, tone_of
from odradek.conventions.figures import INT64_MAX, count_text, parse_time_ms

if TYPE_CHECKING:
    from starlette.responses import Response

ROUTES = Routes("groups")
WAYS = (
    ("earliest", "the earliest record"),
    ("latest", "the end: only new records"),
    ("time", "a time"),
    ("offset", "an offset"),
    ("shift", "a number of records forward, or back"),
)


@ROUTES.page("/groups")
async def show_list(request: PageRequest) -> Response:
    console = request.console
    listed = (await console.call(lambda cluster: list_groups(cluster.requests)))[0]
    page = request.page_of([each for each in listed if has_words(each.name, request.search)])
    members = await console.call(groups.count_members, [each.name for each in page.rows])
    has_lags = await console.run(console.watch.wait_for_lags)
    lags, now_s, lags_age_s = console.watch.group_lags, time.time(), console.watch.lags_age_s()
    rows = [group_row(each, members.get(each.name), lags, now_s, lags_age_s) for each in page.rows]
    return request.render(
        "groups.html",
        page=page.with_rows(rows),
        has_groups=bool(listed),
        has_lags=has_lags,
        old_lags_ms=lags_age_s * 1000 if lags_age_s > OLD_AFTER * LAGS_S else 0,
        most_watched=GROUP_SERIES if len(listed) > GROUP_SERIES else 0,
        tone_of=tone_of,
    )


@ROUTES.page("/group")
async def show(request: PageRequest) -> Response:
    watch = request.console.watch
    name = request.required("name", "group")
    described = await request.console.call(groups.describe_group, await request.snapshot(), name)
    return request.render(
        "group.html",
        group=described.group,
        lags=described.lags,
        denial=described.denial,
        row=group_row(described.group, None, watch.group_lags, time.time(), watch.lags_age_s()),
        page=request.page_of(described.lags.listed),
        tone_of=tone_of,
        assignment_text=assignment_text,
    )


def parse_goal(form: Form) -> Goal:
    """FormError for a way or a number that cannot be read."""
    way, text = form.text("way"), form.text("at")
    if way not in dict(WAYS):
        raise FormError("choose where to reset to")
    if way == "time":
        try:
            return Goal(way, parse_time_ms(text, int(time.time() * 1000)))
        except (ValueError, OverflowError):
            raise FormError(f"{text[:60]!r} is not a time; write 2026-01-31T12:00, epoch ms, or -1h") from None
    least = 0 if way == "offset" else -INT64_MAX
    return Goal(way, parse_number(text, way, least, INT64_MAX) if way in ("offset", "shift") else 0)


@ROUTES.page("/group/reset")
async def show_reset(request: PageRequest, moves: Sequence[Move] = ()) -> Response:
    return request.render(
        "group_reset.html",
        name=request.required("name", "group"),
        ways=WAYS,
        moves=moves,
        plan=json.dumps([[m.topic, m.partition, m.before, m.after] for m in moves]),
        consequence=consequence(moves) if moves else "",
    )


@ROUTES.form("/group/reset/preview", show_reset)
async def preview_reset(request: PageRequest) -> Response:
    name = request.required("name", "group")
    goal, topics = parse_goal(request.posted), request.posted.text("topics").split()
    return await show_reset(request, await request.console.call(groups.plan_reset, name, goal, topics))


def planned_move(topic: Any, partition: Any, before: Any, after: Any) -> Move:
    """ValueError or TypeError for a row that is not one of a preview."""
    if not 0 <= int(after) <= INT64_MAX:
        raise ValueError(after)
    return Move(str(topic), int(partition), None if before is None else int(before), int(after), int(after))


@ROUTES.form("/group/reset", show_reset)
async def apply_reset(request: PageRequest) -> Response:
    name = request.required("name", "group")
    moves = request.posted.plan(planned_move)
    counted = count_text(len(moves), "offset")
    await request.change(f"reset {counted} of group {name}", alter, name, moves)
    return request.redirect(f"/group?{urlencode({'name': name})}", f"Reset {counted} of group {name}.")


@ROUTES.form("/group/delete", show)
async def delete(request: PageRequest) -> Response:
    name = request.required("name", "group")
    request.posted.confirm(name, "name of the group", "deleted")
    await request.change(f"delete group {name}", lambda cluster: delete_group(cluster.requests, name))
    return request.redirect("/groups", f"Deleted group {name}.")
