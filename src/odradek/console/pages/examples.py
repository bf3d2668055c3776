"""The page of an example, as its `view.yml` declares it: entities, the readings of one of them, episodes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from odradek.console.context import Console, console_of, has_console
from odradek.console.pages.requests import PageRequest, Routes, event_stream
from odradek.console.views import examples
from odradek.console.web.rendering import event

if TYPE_CHECKING:
    from starlette.requests import Request

    from odradek.console.cluster.topic_watches import ExampleWatch

ROUTES = Routes("examples")
TURN_S = 1.0
LONGEST_NAME = 80


def has_examples(request: Request) -> bool:
    """Whether the topics of an example exist, as far as the last round has seen, also after a pause of the watch."""
    return has_console(request) and bool(shown_examples(console_of(request)))


def shown_examples(console: Console) -> list[str]:
    snapshot = console.watch.latest
    if snapshot is not None:
        for each in console.examples.values():
            each.has_topic = each.input in snapshot.topics
    return [name for name, each in console.examples.items() if each.has_topic]


@ROUTES.page("/examples")
async def choose(request: PageRequest) -> Response:
    await request.snapshot()
    names = shown_examples(request.console)
    if not names:
        raise HTTPException(404)
    return RedirectResponse(f"/examples/{names[0]}", 303)


@ROUTES.page("/examples/{name}")
async def show(request: PageRequest) -> Response:
    console, watch = request.console, _watch(request)
    snapshot = await request.snapshot()
    if watch.input not in snapshot.topics:
        raise HTTPException(404)
    await console.run(watch.wait_until_read)
    await console.run(console.pipelines.wait_until_read)
    now_s = time.time()
    trouble = _pipeline_trouble(console, watch, now_s)
    with watch.reading() as model:
        view = examples.page_view(model, snapshot.topics, now_s, is_evaluated=not trouble.text)
        chosen = request.query("entity", LONGEST_NAME) or examples.first_choice(model, view["entities"])
        noun = model.noun
    return request.render(
        "example.html",
        name=watch.example,
        others=[each for each in shown_examples(console) if each != watch.example],
        view=view,
        declared=model.view,
        colors={state: model.color(state) for state in model.state_names},
        episodes_title=examples.panel_title(model),
        noun=noun,
        chosen=chosen,
        trouble=trouble,
    )


def _watch(request: PageRequest) -> ExampleWatch:
    found = request.console.examples.get(request.path_params["name"])
    if found is None:
        raise HTTPException(404)
    return found


def _pipeline_trouble(console: Console, watch: ExampleWatch, now_s: float) -> examples.Trouble:
    output, is_masked = watch.view.output, console.settings.is_masked
    with console.pipelines.reading() as pipelines:
        return examples.pipeline_trouble(pipelines.all(), output, now_s, is_masked=is_masked)


@ROUTES.page("/events/examples/{name}")
async def stream(request: PageRequest) -> Response:
    return event_stream(request.console.update_page(_turns(request, request.console, _watch(request))))


async def _turns(request: PageRequest, console: Console, watch: ExampleWatch) -> AsyncIterator[bytes]:
    """The state of all entities and the new readings of the chosen one, every second."""
    chosen = request.query("entity", LONGEST_NAME)
    last_second = 0
    shown: dict[str, Any] = {}
    charts = 0 if watch.view.readings is None else len(watch.view.readings.values)
    while not console.is_stopping and not await request.is_disconnected():
        now_s = time.time()
        snapshot = console.watch.latest
        trouble = _pipeline_trouble(console, watch, now_s)
        with watch.reading() as model:
            topics = {} if snapshot is None else snapshot.topics
            turn = examples.page_view(model, topics, now_s, is_evaluated=not trouble.text)
            chosen = chosen or examples.first_choice(model, turn["entities"])
            points, noun = model.points_since(chosen, last_second), model.noun
        listed = {"name": watch.example, "noun": noun, "episodes": turn["episodes"]}
        turn["episodes"] = request.fragment("example_episodes.html", **listed)
        if points:
            last_second = points[-1].second
        changed = {name: value for name, value in turn.items() if shown.get(name) != value}
        shown = turn
        always = {
            "chosen": chosen,
            "now": now_s,
            "points": examples.chart_points(points, charts),
            "trouble": watch.trouble or trouble.text,
            "tone": "bad" if watch.trouble else trouble.tone,
        }
        yield event("turn", {**always, **changed})
        await console.pause(TURN_S)
