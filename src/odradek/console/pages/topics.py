"""Topics: the list; one with its partitions, settings and readers; and the forms that change them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from odradek.admin.cluster import Cluster
from odradek.admin.errors import NoSuchTopic
from odradek.admin.settings import Change, Kind, Operation, alter_settings, read_settings, suggesting_names
from odradek.admin.topics import delete_topics, grow_topic
from odradek.console.cluster.groups import MOST_GROUPS_OF_TOPIC, TopicGroups, groups_of_topic
from odradek.console.cluster.snapshot import Snapshot, TopicSummary, is_internal
from odradek.console.pages.pipelines import read_pipelines
from odradek.console.pages.requests import Form, PageRequest, Routes, topic_path
from odradek.console.views.figures import FormError, sparkline
from odradek.console.views.groups import tone_of
from odradek.console.views.pipelines import readers_of
from odradek.console.views.topics import COLUMNS, is_own, list_partitions, list_topics, order_settings, parse_query
from odradek.conventions.failures import Failure, similar_names
from odradek.conventions.figures import count_text
from odradek.pipelines.definition.vocabulary import is_topic_name
from odradek.security import authorizer

if TYPE_CHECKING:
    from starlette.responses import Response


ROUTES = Routes("topics")
MOST_PARTITIONS = 10_000
LONGEST_NAME = 249
LARGEST_VALUE = 10_000


class MissingTopic(HTTPException):
    """`similar` are the names of topics that may be meant."""

    def __init__(self, name: str, similar: Sequence[str] = ()) -> None:
        super().__init__(404, f"There is no topic {shown_name(name)}.")
        self.name = name if is_topic_name(name) else ""  # that can be created
        self.similar = similar


def checked_name(request: PageRequest) -> str:
    """The topic of the address; MissingTopic unless a topic may have the name."""
    name: str = request.path_params["name"]
    if not is_topic_name(name):
        raise MissingTopic(name)
    return name


def shown_name(name: str) -> str:
    return repr(name[:LONGEST_NAME])[1:-1] + ("…" if len(name) > LONGEST_NAME else "")


async def find_topic(request: PageRequest) -> tuple[Snapshot, TopicSummary]:
    """The topic of the address. One that is not in the last snapshot may have been created since."""
    console = request.console
    name = request.path_params["name"]
    snapshot = await request.snapshot()
    if name not in snapshot.topics:
        snapshot = await request.look_again()
    if name not in snapshot.topics:
        with contextlib.suppress(NoSuchTopic):
            if is_topic_name(name):
                await console.call(Cluster.describe_topic, name)
                raise HTTPException(404, f"The topic {shown_name(name)} is new; open this page again.")
        known = [each for each in snapshot.topics if not is_internal(each)]
        raise MissingTopic(name, await console.run(lambda: similar_names(name, known)))
    return snapshot, snapshot.topics[name]


@ROUTES.page("/topics")
async def show_list(request: PageRequest) -> Response:
    snapshot = await request.snapshot()
    query = parse_query(request.query_params)
    return request.render(
        "topics.html",
        page=list_topics(snapshot, request.console.watch.topic_rates, query),
        query=query,
        columns=COLUMNS,
        has_topics=any(not topic.is_internal for topic in snapshot.topics.values()),
    )


@ROUTES.page("/new-topic")
async def show_new(request: PageRequest) -> Response:
    if not request.posted.has("name"):
        request.posted = Form({"name": [request.query("name", LONGEST_NAME)]})
    snapshot = request.console.watch.latest
    return request.render("topic_new.html", brokers=None if snapshot is None else len(snapshot.state.brokers))


def create_topic(cluster: Cluster, name: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> None:
    """The broker chooses numbers that are −1."""
    with suggesting_names(configs):
        if not cluster.create_topic(name, partitions, replicas, configs):
            raise Failure(f"topic {name} already exists")


@ROUTES.form("/new-topic", show_new)
async def create(request: PageRequest) -> Response:
    form, name = request.posted, request.posted.text("name")
    if not 0 < len(name) <= LONGEST_NAME:
        raise FormError(f"a topic's name has 1 to {LONGEST_NAME} characters")
    partitions = form.number("partitions", 1, MOST_PARTITIONS, -1)
    replicas = form.number("replicas", 1, 100, -1)
    configs = dict(form.pairs("settings", "setting"))
    change = f"create topic {name} ({partitions} partitions, {replicas} replicas, {configs})"
    await request.change(change, create_topic, name, partitions, replicas, configs)
    topic = (await request.look_again()).topics.get(name)
    with_partitions = f" with {count_text(topic.partitions, 'partition')}" if topic is not None else ""
    return request.redirect(topic_path(name), f"Created topic {name}{with_partitions}.")


@ROUTES.page("/topics/{name:topic}/partitions")
async def show(request: PageRequest) -> Response:
    snapshot, topic = await find_topic(request)
    page = request.page_of(snapshot.state.of_topics([topic.name]))
    return request.render(
        "topic.html",
        topic=topic,
        line=sparkline(request.console.watch.topic_rates.points(topic.name, snapshot.time_s)),
        page=page.with_rows(list_partitions(snapshot, page.rows)),
    )


@ROUTES.form("/topics/{name:topic}/partitions", show)
async def grow(request: PageRequest) -> Response:
    name = request.path_params["name"]
    partitions = request.posted.number("partitions", 1, MOST_PARTITIONS)
    counted = count_text(partitions, "partition")
    await request.change(f"topic {name}: {counted}", grow_topic, name, partitions)
    await request.look_again()
    return request.redirect(topic_path(name, "/partitions"), f"{name} now has {counted}.")


def delete_topic(cluster: Cluster, name: str) -> None:
    for failure in filter(None, delete_topics(cluster, [name]).values()):
        raise failure


@ROUTES.form("/topics/{name:topic}/delete", show)
async def delete(request: PageRequest) -> Response:
    name = request.path_params["name"]
    request.posted.confirm(name, "name of the topic", "deleted")
    await request.change(f"delete topic {name}", delete_topic, name)
    await request.look_again()
    return request.redirect("/topics", f"Deleted topic {name}.")


def may_alter_settings(cluster: Cluster, name: str) -> bool:
    """Whether the access rules let the user do so; True if the cluster does not say."""
    operations = cluster.describe_topic(name, with_operations=True).operations
    return not operations or authorizer.Operation.ALTER_CONFIGS in operations


@ROUTES.page("/topics/{name:topic}/settings")
async def show_settings(request: PageRequest) -> Response:
    console = request.console
    _snapshot, topic = await find_topic(request)
    settings = order_settings(await console.call(read_settings, Kind.TOPIC, topic.name), request.search)
    may_alter = not console.settings.is_read_only and await console.call(may_alter_settings, topic.name)
    own = {each.name for each in settings if is_own(each)}
    return request.render("topic_settings.html", topic=topic, settings=settings, own=own, may_alter=may_alter)


def alter_setting(cluster: Cluster, name: str, setting: str, value: str | None) -> None:
    """Returns the setting to its default if the value is None."""
    change = Change(setting, value, Operation.DELETE if value is None else Operation.SET)
    with suggesting_names([setting]):
        alter_settings(cluster, Kind.TOPIC, name, [change])


@ROUTES.form("/topics/{name:topic}/settings", show_settings)
async def change_setting(request: PageRequest) -> Response:
    name, form = request.path_params["name"], request.posted
    setting = form.text("setting")[:200]
    value = None if form.has("reset") else form.text("value")[:LARGEST_VALUE]
    change = f"{setting} has its default value again" if value is None else f"{setting} = {value}"
    await request.change(f"topic {name}: {change}", alter_setting, name, setting, value)
    return request.redirect(topic_path(name, "/settings"), f"{name}: {change}.")


@ROUTES.page("/topics/{name:topic}/groups")
async def show_groups(request: PageRequest) -> Response:
    """The groups and pipelines that read the topic."""
    snapshot, topic = await find_topic(request)
    listed, denial = await request.list_or_denial(groups_of_topic, snapshot, topic.name)
    found = listed or TopicGroups()
    return request.render(
        "topic_groups.html",
        topic=topic,
        page=request.page_of(found.groups),
        most_groups=MOST_GROUPS_OF_TOPIC if found.is_cut else 0,
        pipelines=await read_pipelines(request.console, lambda known: readers_of(known, topic.name)),
        tone_of=tone_of,
        denial=denial,
    )
