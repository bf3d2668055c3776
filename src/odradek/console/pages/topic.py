"""One topic: its partitions, its settings, and the forms that change, grow and delete it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.routing import Route

from odradek.console.cluster.connection import Failure, NoSuchTopic, similar_names
from odradek.console.cluster.snapshot import is_internal
from odradek.console.cluster.topics import (
    alter_topic_setting,
    check_topic,
    delete_topic,
    grow_topic,
    may_alter_settings,
    topic_settings,
)
from odradek.console.context import console_of
from odradek.console.pages.changes import checked_form, make_change
from odradek.console.pages.forms import FormError
from odradek.console.pages.listing import choose_template, page_number, search_text
from odradek.console.pages.topics import MOST_PARTITIONS
from odradek.console.views.figures import plural, sparkline
from odradek.console.views.topics import is_own, list_partitions, order_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from odradek.console.cluster.snapshot import Snapshot, TopicSummary

LARGEST_VALUE = 10_000
LONGEST_NAME = 249
TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class MissingTopic(HTTPException):
    """`similar` are the names of topics that may be meant."""

    def __init__(self, name: str, similar: Sequence[str]) -> None:
        super().__init__(404, f"There is no topic {shown_name(name)}.")
        self.name = name if TOPIC_NAME.fullmatch(name) else ""  # that can be created
        self.similar = similar


def shown_name(name: str) -> str:
    return repr(name[:LONGEST_NAME])[1:-1] + ("…" if len(name) > LONGEST_NAME else "")


async def find_topic(request: Request) -> tuple[Snapshot, TopicSummary]:
    """The topic of the address. One that is not in the last snapshot may have been created since."""
    console = console_of(request)
    name = request.path_params["name"]
    snapshot = await console.run(console.watch.snapshot)
    if name not in snapshot.topics:
        snapshot = await console.run(console.watch.look_again)
    if name not in snapshot.topics:
        try:
            await console.call(check_topic, name)
        except NoSuchTopic:
            known = [each for each in snapshot.topics if not is_internal(each)]
            raise MissingTopic(name, await console.run(lambda: similar_names(name, known))) from None
        raise HTTPException(404, f"The topic {shown_name(name)} is new; open this page again.")
    return snapshot, snapshot.topics[name]


async def show(request: Request, error: str = "") -> Response:
    console = console_of(request)
    snapshot, topic = await find_topic(request)
    number = page_number(request)
    return console.renderer.page(
        request,
        "topic.html",
        422 if error else 200,
        section="topics",
        tab="partitions",
        topic=topic,
        line=sparkline(console.watch.topic_rates.points(topic.name, snapshot.time_s)),
        page=list_partitions(snapshot, topic.name, number),
        error=error,
    )


async def show_settings(request: Request, error: str = "") -> Response:
    console = console_of(request)
    _snapshot, topic = await find_topic(request)
    search = search_text(request)
    settings = order_settings(await console.call(topic_settings, topic.name), search)
    may_alter = not console.settings.is_read_only and await console.call(may_alter_settings, topic.name)
    template = choose_template(request, "topic_settings", "settings")
    return console.renderer.page(
        request,
        template,
        422 if error else 200,
        section="topics",
        tab="settings",
        topic=topic,
        settings=settings,
        own={each.name for each in settings if is_own(each)},
        search=search,
        may_alter=may_alter,
        error=error,
    )


async def change_setting(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    name = request.path_params["name"]
    setting = form.text("setting")[:200]
    value = None if form.has("reset") else form.text("value")[:LARGEST_VALUE]
    change = f"{setting} has its default value again" if value is None else f"{setting} = {value}"
    try:
        await make_change(request, f"topic {name}: {change}", alter_topic_setting, name, setting, value)
    except Failure as failure:
        return await show_settings(request, failure.message)
    return console.renderer.redirect(f"/topics/{name}/settings", f"{name}: {change}.")


async def grow(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    name = request.path_params["name"]
    try:
        partitions = form.number("partitions", 1, MOST_PARTITIONS)
        await make_change(request, f"topic {name}: {plural(partitions, 'partition')}", grow_topic, name, partitions)
    except Failure as failure:
        return await show(request, failure.message)
    except FormError as error:
        return await show(request, str(error))
    await console.run(console.watch.look_again)
    return console.renderer.redirect(f"/topics/{name}/partitions", f"{name} now has {plural(partitions, 'partition')}.")


async def delete(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    name = request.path_params["name"]
    if form.text("confirmation") != name:
        return await show(request, f"nothing was deleted: type the name of the topic, {name}, to confirm")
    try:
        await make_change(request, f"delete topic {name}", delete_topic, name)
    except Failure as failure:
        return await show(request, failure.message)
    await console.run(console.watch.look_again)
    return console.renderer.redirect("/topics", f"Deleted topic {name}.")


ROUTES = [
    Route("/topics/{name}/partitions", show),
    Route("/topics/{name}/settings", show_settings),
    Route("/topics/{name}/settings", change_setting, methods=["POST"]),
    Route("/topics/{name}/partitions", grow, methods=["POST"]),
    Route("/topics/{name}/delete", delete, methods=["POST"]),
]
