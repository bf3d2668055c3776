"""The groups and pipelines that read a topic."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from starlette.routing import Route

from odradek.console.cluster.groups import MOST_GROUPS_OF_TOPIC, TopicGroups, groups_of_topic
from odradek.console.context import console_of
from odradek.console.pages.listing import list_or_denial, page_number
from odradek.console.pages.pipelines import FIRST_READ_S
from odradek.console.pages.topic import find_topic
from odradek.console.views.groups import tone_of
from odradek.console.views.paging import page_of
from odradek.console.views.pipelines import pipeline_rows, readers_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def show(request: Request) -> Response:
    console = console_of(request)
    snapshot, topic = await find_topic(request)
    number = page_number(request)
    found, denial = await list_or_denial(console, TopicGroups(), groups_of_topic, snapshot, topic.name)
    await console.run(lambda: console.pipelines.wait_until_read(FIRST_READ_S))
    is_masked = bool(console.settings.preparation.masks)
    with console.pipelines.reading() as pipelines:
        rows = pipeline_rows(readers_of(pipelines.all(), topic.name), time.time(), is_masked=is_masked)
    return console.renderer.page(
        request,
        "topic_groups.html",
        section="topics",
        tab="groups",
        topic=topic,
        page=page_of(found.groups, number),
        most_groups=MOST_GROUPS_OF_TOPIC if found.is_cut else 0,
        pipelines=rows,
        tone_of=tone_of,
        denial=denial,
    )


ROUTES = [Route("/topics/{name}/groups", show)]
