"""Topics: the list; one with its partitions, settings and readers; and the forms that change them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from odradek.console.cluster import topics
from odradek.console.cluster.groups import MOST_GROUPS_OF_TOPIC, TopicGroups, groups_of_topic
from odradek.console.cluster.snapshot import is_internal
from odradek.console.context import console_of
from odradek.console.pages.forms import (
    NO_FORM,
    Form,
    Routes,
    list_or_denial,
    make_change,
    page_number,
    parse_pairs,
    search_text,
)
from odradek.console.pages.pipelines import read_pipelines
from odradek.console.views.figures import FormError, page_of, sparkline
from odradek.console.views.groups import tone_of
from odradek.console.views.pipelines import readers_of
from odradek.console.views.topics import COLUMNS, is_own, list_partitions, list_topics, order_settings, parse_query
from odradek.console.web.rendering import redirect, render
from odradek.conventions.failures import similar_names
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from odradek.console.cluster.snapshot import Snapshot, TopicSummary

ROUTES = Routes()
MOST_PARTITIONS = 10_000
LONGEST_NAME = 249
LARGEST_VALUE = 10_000


class MissingTopic(HTTPException):
    """`similar` are the names of topics that may be meant."""

    def __init__(self, name: str, similar: Sequence[str] = ()) -> None:
        super().__init__(404, f"There is no topic {shown_name(name)}.")
        self.name = name if is_topic_name(name) else ""  # that can be created
        self.similar = similar


def is_topic_name(text: str) -> bool:
    """Whether a topic may have the name. Of others, brokers answer that the request is invalid."""
    return re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", text) is not None


def checked_name(request: Request) -> str:
    """The topic of the address; MissingTopic unless a topic may have the name."""
    name: str = request.path_params["name"]
    if not is_topic_name(name):
        raise MissingTopic(name)
    return name


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
        if is_topic_name(name) and await console.call(topics.has_topic, name):
            raise HTTPException(404, f"The topic {shown_name(name)} is new; open this page again.")
        known = [each for each in snapshot.topics if not is_internal(each)]
        raise MissingTopic(name, await console.run(lambda: similar_names(name, known)))
    return snapshot, snapshot.topics[name]


@ROUTES.page("/topics")
async def show_list(request: Request) -> Response:
    console = console_of(request)
    snapshot = await console.run(console.watch.snapshot)
    query = parse_query(request.query_params)
    return render(
        request,
        "topics.html",
        table="topics",
        section="topics",
        page=list_topics(snapshot, console.watch.topic_rates, query),
        query=query,
        columns=COLUMNS,
        has_topics=any(not topic.is_internal for topic in snapshot.topics.values()),
    )


@ROUTES.page("/new-topic")
async def show_new(request: Request, form: Form = NO_FORM, error: str = "") -> Response:
    if form is NO_FORM:
        form = Form({"name": [request.query_params.get("name", "")[:LONGEST_NAME]]})
    snapshot = console_of(request).watch.latest
    brokers = len(snapshot.state.brokers) if snapshot is not None else None
    return render(request, "topic_new.html", section="topics", form=form, error=error, brokers=brokers)


@ROUTES.form("/new-topic", show_new)
async def create(request: Request, form: Form) -> Response:
    console = console_of(request)
    name = form.text("name")
    if not 0 < len(name) <= LONGEST_NAME:
        raise FormError(f"a topic's name has 1 to {LONGEST_NAME} characters")
    partitions = form.number("partitions", 1, MOST_PARTITIONS, -1)
    replicas = form.number("replicas", 1, 100, -1)
    configs = dict(parse_pairs(form.text("settings"), "setting"))
    change = f"create topic {name} ({partitions} partitions, {replicas} replicas, {configs})"
    await make_change(request, change, topics.create_topic, name, partitions, replicas, configs)
    snapshot = await console.run(console.watch.look_again)
    topic = snapshot.topics.get(name)
    with_partitions = f" with {count_text(topic.partitions, 'partition')}" if topic is not None else ""
    return redirect(request, f"/topics/{name}", f"Created topic {name}{with_partitions}.")


@ROUTES.page("/topics/{name}/partitions")
async def show(request: Request, _form: Form = NO_FORM, error: str = "") -> Response:
    console = console_of(request)
    snapshot, topic = await find_topic(request)
    number = page_number(request)
    return render(
        request,
        "topic.html",
        section="topics",
        tab="partitions",
        topic=topic,
        line=sparkline(console.watch.topic_rates.points(topic.name, snapshot.time_s)),
        page=list_partitions(snapshot, topic.name, number),
        error=error,
    )


@ROUTES.form("/topics/{name}/partitions", show)
async def grow(request: Request, form: Form) -> Response:
    console = console_of(request)
    name = request.path_params["name"]
    partitions = form.number("partitions", 1, MOST_PARTITIONS)
    counted = count_text(partitions, "partition")
    await make_change(request, f"topic {name}: {counted}", topics.grow_topic, name, partitions)
    await console.run(console.watch.look_again)
    return redirect(request, f"/topics/{name}/partitions", f"{name} now has {counted}.")


@ROUTES.form("/topics/{name}/delete", show)
async def delete(request: Request, form: Form) -> Response:
    console = console_of(request)
    name = request.path_params["name"]
    if form.text("confirmation") != name:
        raise FormError(f"nothing was deleted: type the name of the topic, {name}, to confirm")
    await make_change(request, f"delete topic {name}", topics.delete_topic, name)
    await console.run(console.watch.look_again)
    return redirect(request, "/topics", f"Deleted topic {name}.")


@ROUTES.page("/topics/{name}/settings")
async def show_settings(request: Request, _form: Form = NO_FORM, error: str = "") -> Response:
    console = console_of(request)
    _snapshot, topic = await find_topic(request)
    search = search_text(request)
    settings = order_settings(await console.call(topics.topic_settings, topic.name), search)
    may_alter = not console.settings.is_read_only and await console.call(topics.may_alter_settings, topic.name)
    return render(
        request,
        "topic_settings.html",
        table="settings",
        section="topics",
        tab="settings",
        topic=topic,
        settings=settings,
        own={each.name for each in settings if is_own(each)},
        search=search,
        may_alter=may_alter,
        error=error,
    )


@ROUTES.form("/topics/{name}/settings", show_settings)
async def change_setting(request: Request, form: Form) -> Response:
    name = request.path_params["name"]
    setting = form.text("setting")[:200]
    value = None if form.has("reset") else form.text("value")[:LARGEST_VALUE]
    change = f"{setting} has its default value again" if value is None else f"{setting} = {value}"
    await make_change(request, f"topic {name}: {change}", topics.alter_topic_setting, name, setting, value)
    return redirect(request, f"/topics/{name}/settings", f"{name}: {change}.")


@ROUTES.page("/topics/{name}/groups")
async def show_groups(request: Request) -> Response:
    """The groups and pipelines that read the topic."""
    console = console_of(request)
    snapshot, topic = await find_topic(request)
    number = page_number(request)
    found, denial = await list_or_denial(console, TopicGroups(), groups_of_topic, snapshot, topic.name)
    return render(
        request,
        "topic_groups.html",
        section="topics",
        tab="groups",
        topic=topic,
        page=page_of(found.groups, number),
        most_groups=MOST_GROUPS_OF_TOPIC if found.is_cut else 0,
        pipelines=await read_pipelines(console, lambda known: readers_of(known, topic.name)),
        tone_of=tone_of,
        denial=denial,
    )
