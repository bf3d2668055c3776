"""What the page of an example shows, as its `view.yml` declares it: entities, tiles, episodes, readings. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.console.models import UNKNOWN, ExampleModel, KnownPipeline, Point, contents_of
from odradek.console.views.figures import DASH, age, number, rate
from odradek.console.views.pipelines import is_processing, pipeline_row
from odradek.console.views.records import visible
from odradek.conventions.figures import count_text
from odradek.examples.live_view.definition import Counts

if TYPE_CHECKING:
    from odradek.console.cluster.snapshot import TopicSummary

SHOWN_EPISODES = 14
LONGEST_TEXT = 40


class Tile(NamedTuple):
    """A figure with its title and a note, which may end with a link to a topic."""

    title: str
    text: str
    note: str
    topic: str = ""


class Line(NamedTuple):
    """An episode: the entity, what happened, further values, and when."""

    entity: str
    event: str
    values: tuple[tuple[str, str], ...]
    times: int
    since: str
    latency: str
    color: str


class Trouble(NamedTuple):
    text: str
    tone: str


NO_TROUBLE = Trouble("", "")


def pipeline_trouble(pipelines: Iterable[KnownPipeline], output: str, now_s: float, *, is_masked: bool) -> Trouble:
    """Why no pipeline that writes the output evaluates the readings; NO_TROUBLE if one does, or if none is known."""
    sinks = ((each, node) for each in pipelines for node in each.published.nodes if node.kind == "sink")
    writers = [each for each, node in sinks if output in node.topics]
    if not writers or any(is_processing(each, now_s) for each in writers):
        return NO_TROUBLE
    latest = max(writers, key=lambda each: each.published.published_s)
    row = pipeline_row(latest, now_s, is_masked=is_masked)
    restarts = f", {count_text(row.status.restarts, 'restart')}" if row.status.restarts else ""
    reason = f": {row.reason}" if row.reason else ""
    text = f"Readings are not evaluated. Pipeline {row.status.name}: {row.state}{restarts}{reason}"
    return Trouble(visible(text), "bad" if row.tone == "bad" else "warn")


def page_view(
    model: ExampleModel, topics: Mapping[str, TopicSummary], now_s: float, *, is_evaluated: bool
) -> dict[str, Any]:
    entities = entity_states(model, now_s, is_evaluated=is_evaluated)
    return {
        "entities": entities,
        "counts": state_counts(model, entities),
        "tiles": tiles(model, topics, now_s),
        "episodes": episodes(model, now_s),
    }


def entity_states(model: ExampleModel, now_s: float, *, is_evaluated: bool = True) -> list[tuple[str, str]]:
    """Each entity with its state. Without a pipeline that evaluates readings, none has the usual one."""
    usual = model.otherwise if is_evaluated else UNKNOWN
    return [(name, usual if state == model.otherwise else state) for name, state in model.states(now_s).items()]


def state_counts(model: ExampleModel, entities: Sequence[tuple[str, str]]) -> dict[str, int]:
    found = Counter(state for _name, state in entities)
    return {state: found[state] for state in model.state_names}


def first_choice(model: ExampleModel, entities: Sequence[tuple[str, str]]) -> str:
    """The entity that a page shows unless another is chosen: one that needs attention, and reports."""
    values = model.view.figures.states.values if model.view.figures.states is not None else ()
    reporting = [each.name for each in values if not each.lasts_until_seen]
    order = [*reporting, model.otherwise, UNKNOWN, *(each.name for each in values if each.lasts_until_seen)]
    return min(entities, key=lambda entity: order.index(entity[1]), default=("", ""))[0]


def episodes(model: ExampleModel, now_s: float) -> list[Line]:
    if model.episodes is None:
        return []
    found = []
    for episode in model.episodes.latest(SHOWN_EPISODES):
        shown = [(title, _plain(episode.columns.get(column))) for title, column in model.episodes.declared.columns]
        (_, entity), (_, event), *values = [*shown, ("", ""), ("", "")][: max(2, len(shown))]
        known = tuple((title, text) for title, text in values if text != DASH)
        since, color = f"{age(max(0.0, now_s - episode.began_s) * 1000)} ago", model.color_of(episode.columns)
        found.append(Line(entity, event, known, episode.times, since, age(episode.latency_ms), color))
    return found


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}"
    return DASH if value is None else str(value)[:LONGEST_TEXT]


def tiles(model: ExampleModel, topics: Mapping[str, TopicSummary], now_s: float) -> list[Tile]:
    view = model.view
    assert view.readings is not None
    assert view.figures.states is not None

    def rate_of(title: str, topic: str) -> Tile:
        text = rate(topics[topic].records_per_s) if topic in topics else DASH
        return Tile(title, text, "per second, in", topic)

    found = [
        Tile(view.figures.states.entities.capitalize(), number(len(model.states(now_s))), "with readings"),
        rate_of("Readings", view.readings.topic),
    ]
    if model.episodes is not None:
        topic = model.episodes.declared.topic
        found.append(rate_of(topic.capitalize(), topic))
    if view.figures.latency is not None:
        latency = model.latency_ms(now_s)
        when = "warming up" if latency["is_of_warm_up"] else "last minute"
        note = f"p99 {age(latency['p99'])}, {when}" if "p99" in latency else "nothing in the last minute"
        found.append(Tile(view.figures.latency.title.capitalize(), age(latency.get("p50")), note))
    for panel in view.panels:
        if isinstance(panel.content, Counts):
            summary = topics.get(panel.content.topic)
            text = number(None if summary is None else summary.records)
            found.append(Tile(panel.title.capitalize(), text, "in", panel.content.topic))
    return found


def panel_title(model: ExampleModel) -> str:
    """The title of the episodes."""
    panels = model.view.panels
    if model.episodes is None:
        return ""
    return panels[contents_of(model.view).index(model.episodes.declared)].title.capitalize()


def chart_points(points: Sequence[Point], number_of_charts: int) -> dict[str, list[Any]]:
    return {
        "time": [point.second for point in points],
        "values": [[point.values[index] for point in points] for index in range(number_of_charts)],
    }
