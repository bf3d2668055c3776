"""The list of topics, and the form that creates one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from odradek.console.cluster.connection import Failure
from odradek.console.cluster.topics import create_topic
from odradek.console.context import console_of
from odradek.console.pages.changes import checked_form, make_change
from odradek.console.pages.forms import Form, FormError
from odradek.console.pages.listing import choose_template
from odradek.console.views.figures import plural
from odradek.console.views.topics import COLUMNS, list_topics, parse_query

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MOST_PARTITIONS = 10_000
LARGEST_NAME = 249


async def show_list(request: Request) -> Response:
    console = console_of(request)
    snapshot = await console.run(console.watch.snapshot)
    query = parse_query(request.query_params)
    page = list_topics(snapshot, console.watch.topic_rates, query)
    has_topics = any(not topic.is_internal for topic in snapshot.topics.values())
    template = choose_template(request, "topics", "topics")
    return console.renderer.page(
        request, template, section="topics", page=page, query=query, columns=COLUMNS, has_topics=has_topics
    )


async def show_new(request: Request) -> Response:
    return _form(request, Form({"name": [request.query_params.get("name", "")[:LARGEST_NAME]]}))


def _form(request: Request, form: Form, error: str = "", status: int = 200) -> Response:
    console = console_of(request)
    snapshot = console.watch.latest
    brokers = len(snapshot.state.brokers) if snapshot is not None else None
    return console.renderer.page(
        request, "topic_new.html", status, section="topics", form=form, error=error, brokers=brokers
    )


async def create(request: Request) -> Response:
    console = console_of(request)
    form = await checked_form(request)
    name = form.text("name")
    try:
        if not 0 < len(name) <= LARGEST_NAME:
            raise FormError(f"a topic's name has 1 to {LARGEST_NAME} characters")
        partitions = form.number("partitions", 1, MOST_PARTITIONS, -1)
        replicas = form.number("replicas", 1, 100, -1)
        configs = parse_settings(form.text("settings"))
        change = f"create topic {name} ({partitions} partitions, {replicas} replicas, {configs})"
        await make_change(request, change, create_topic, name, partitions, replicas, configs)
    except Failure as failure:
        return _form(request, form, failure.message, 422)
    except FormError as error:
        return _form(request, form, str(error), 422)
    snapshot = await console.run(console.watch.look_again)
    topic = snapshot.topics.get(name)
    with_partitions = f" with {plural(topic.partitions, 'partition')}" if topic is not None else ""
    return console.renderer.redirect(f"/topics/{name}", f"Created topic {name}{with_partitions}.")


def parse_settings(text: str) -> dict[str, str]:
    """One `name=value` on each line; FormError for anything else."""
    settings: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise FormError(f"{line[:60]!r} is not name=value; write one setting on each line")
        settings[name.strip()] = value.strip()
    return settings


ROUTES = [
    Route("/topics", show_list),
    Route("/new-topic", show_new),
    Route("/new-topic", create, methods=["POST"]),
]
