"""What the page of the rigs example shows: pumps with their states, figures, warnings, the readings of a pump. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.console.models import DEAD_LETTERS, LIMITS, READINGS, WARNINGS
from odradek.console.views.figures import DASH, age, number, rate
from odradek.console.views.pipelines import is_processing, pipeline_row
from odradek.console.views.records import visible
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.console.cluster.snapshot import TopicSummary
    from odradek.console.models import KnownPipeline, Point, RigModel

SHOWN_WARNINGS = 14
STATES = ("calm", "rising", "over", "silent", "unknown")


class Warned(NamedTuple):
    """An episode of warnings."""

    pump: str
    rule: str
    value: str
    bound: str
    times: int
    since: str
    latency: str
    tone: str


def tone_of(rule: str) -> str:
    if rule == "silent":
        return "silent"
    return "rising" if rule.endswith("rising") else "over"


class Trouble(NamedTuple):
    text: str
    tone: str


NO_TROUBLE = Trouble("", "")


def pipeline_trouble(pipelines: Iterable[KnownPipeline], now_s: float, *, is_masked: bool) -> Trouble:
    """Why no pipeline evaluates the readings; NO_TROUBLE if one does, or if none is known."""
    writers = [
        each
        for each in pipelines
        if any(node.kind == "sink" and WARNINGS in node.topics for node in each.published.nodes)
    ]
    if not writers or any(is_processing(each, now_s) for each in writers):
        return NO_TROUBLE
    latest = max(writers, key=lambda each: each.published.published_s)
    row = pipeline_row(latest, now_s, is_masked=is_masked)
    restarts = f", {count_text(row.status.restarts, 'restart')}" if row.status.restarts else ""
    reason = f": {row.reason}" if row.reason else ""
    text = f"Readings are not evaluated. Pipeline {row.status.name}: {row.state}{restarts}{reason}"
    return Trouble(visible(text), "bad" if row.tone == "bad" else "warn")


def rigs_view(
    model: RigModel, topics: Mapping[str, TopicSummary], now_s: float, *, is_evaluated: bool
) -> dict[str, Any]:
    pumps = pump_states(model, now_s, is_evaluated=is_evaluated)
    return {
        "pumps": pumps,
        "counts": state_counts(pumps),
        "figures": figures(model, topics, now_s),
        "warnings": warnings(model, now_s),
    }


def pump_states(model: RigModel, now_s: float, *, is_evaluated: bool = True) -> list[tuple[str, str]]:
    """Each pump with the class of its state. Without a pipeline that evaluates readings, none is calm."""
    states = model.states(now_s)
    usual = "calm" if is_evaluated else "unknown"
    return [(name, usual if states[name] == model.otherwise else _class_of(states[name])) for name in model.pumps()]


def state_counts(pumps: Sequence[tuple[str, str]]) -> dict[str, int]:
    found = Counter(state for _name, state in pumps)
    return {state: found[state] for state in STATES}


def _class_of(state: str) -> str:
    return state if state in STATES else "over"


def first_choice(pumps: Sequence[tuple[str, str]]) -> str:
    """The pump that a page shows unless another is chosen: one that needs attention."""
    order = ("over", "rising", "calm", "unknown", "silent")
    return min(pumps, key=lambda pump: order.index(pump[1]), default=("", ""))[0]


def warnings(model: RigModel, now_s: float) -> list[Warned]:
    found = []
    for episode in model.latest_warnings(SHOWN_WARNINGS):
        columns = episode.columns
        rule = str(columns.get("rule") or DASH)[:40]
        found.append(
            Warned(
                str(columns.get("hcid") or DASH)[:40],
                rule,
                _plain(columns.get("value")),
                _plain(columns.get("bound")),
                episode.times,
                f"{age(max(0.0, now_s - episode.began_s) * 1000)} ago",
                age(episode.latency_ms),
                tone_of(rule),
            )
        )
    return found


def _plain(value: Any) -> str:
    return f"{value:,.1f}" if isinstance(value, int | float) else DASH


def figures(model: RigModel, topics: Mapping[str, TopicSummary], now_s: float) -> dict[str, str]:
    """The texts of the tiles, by the name under which the page keeps them."""
    latency = model.latency_ms(now_s)
    warming = ", warming up" if latency["is_of_warm_up"] else ", last minute"

    def rate_of(name: str) -> str:
        return rate(topics[name].records_per_s) if name in topics else DASH

    dead = topics.get(DEAD_LETTERS)
    return {
        "pumps": number(len(model.pumps())),
        "readings": rate_of(READINGS),
        "warnings": rate_of(WARNINGS),
        "latency": age(latency.get("p50")),
        "latency_note": f"p99 {age(latency['p99'])}{warming}" if "p99" in latency else "no warning was read",
        "dead": number(None if dead is None else dead.records),
    }


def chart_points(points: Sequence[Point]) -> dict[str, list[Any]]:
    names = {"time": "second", "pressure": "pressure", "temperature": "temperature"}
    return {name: [getattr(point, field) for point in points] for name, field in names.items()}


CHARTS = (
    ("pressure", "Pressure", "bar", *LIMITS["pressure"]),
    ("temperature", "Temperature", "°C", *LIMITS["temperature"]),
)
