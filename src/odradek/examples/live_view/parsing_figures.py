"""Parses the figures of a panel: latency, lag, states of entities, totals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.examples.declared_fields import DeclaredFields
from odradek.examples.live_view.definition import Figures, Lag, Latency, States, StateValue, Total
from odradek.pipelines.definition.fields import topic_of
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.vocabulary import is_topic_name

if TYPE_CHECKING:
    from odradek.pipelines.definition.nodes import Node, Scalar
    from odradek.pipelines.definition.places import Problems

KEYS = ("latency", "lag", "states", "totals")
STATES_KEYS = ("entities", "seen_in", "topic", "key", "column", "lasts", "otherwise", "values")
COLORS = ("green", "yellow", "red", "magenta", "blue", "cyan", "white")
DEFAULT_WARM_UP_S = 30.0
DEFAULT_LASTS_S = 30.0


def parse_figures(node: Node, what: str, problems: Problems) -> Figures:
    fields = DeclaredFields(node, KEYS, what, problems)
    totals = [
        Total(key.text, topic, of.text("column"))
        for key, value in fields.entries("totals", "titles to totals")
        if (topic := (of := DeclaredFields(value, ("topic", "column"), f"total '{key.text}'", problems)).topic("topic"))
    ]
    return Figures(parse_latency(fields), parse_lag(fields), parse_states(fields), tuple(totals))


def inner(fields: DeclaredFields, key: str, keys: tuple[str, ...]) -> DeclaredFields | None:
    node = fields.node(key)
    return None if node is None else DeclaredFields(node, keys, f"{key} of {fields.what}", fields.problems)


def parse_latency(fields: DeclaredFields) -> Latency | None:
    latency = inner(fields, "latency", ("topic", "since", "title", "warm_up"))
    if latency is None:
        return None
    topic = named_topic(latency, "topic", "name the topic whose records are timed")
    since = latency.text("since", required="name the column with the time at which it begins")
    if topic is None or since is None:
        return None
    title = latency.text("title") or "latency"
    return Latency(topic, since, title, latency.seconds("warm_up", DEFAULT_WARM_UP_S))


def parse_lag(fields: DeclaredFields) -> Lag | None:
    lag = inner(fields, "lag", ("topic", "seen_in"))
    if lag is None:
        return None
    topic = named_topic(lag, "topic", "name the topic that the pipeline reads")
    seen_in = lag.words("seen_in", required="name the topics whose records name their input in headers")
    if not all(map(is_topic_name, seen_in)):
        lag.wrong("seen_in", "names of topics")
    return None if topic is None or not seen_in else Lag(topic, seen_in)


def parse_states(fields: DeclaredFields) -> States | None:
    states = inner(fields, "states", STATES_KEYS)
    if states is None:
        return None
    seen_in = named_topic(states, "seen_in", "name the topic whose keys are the entities")
    topic = named_topic(states, "topic", "name the topic whose records set the states")
    entities = states.text("entities", required="say what the entities are called, such as pumps")
    key = states.text("key", required="name the column with the entity")
    column = states.text("column", required="name the column that says the state")
    values = [parse_value(name, node, states.problems) for name, node in states.entries("values", "states to patterns")]
    if not values:
        states.missing("values", 'write values: {high: {is: ["* high"], color: red}}')
    if topic is None or seen_in is None or entities is None or key is None or column is None:
        return None
    return States(
        entities,
        seen_in,
        topic,
        key,
        column,
        states.seconds("lasts", DEFAULT_LASTS_S),
        states.text("otherwise") or "calm",
        tuple(values),
    )


def parse_value(name: Scalar, node: Node, problems: Problems) -> StateValue:
    fields = DeclaredFields(node, ("is", "color", "until_seen"), f"state '{name.text}'", problems)
    patterns = fields.words("is", required='write patterns of the column: is: ["* high"]')
    color = fields.text("color") or "red"
    if color not in COLORS:
        problems.error(
            fields.place_of("color"), f"there is no color '{color}'", suggestion(color, COLORS, what="colors")
        )
    return StateValue(name.text, patterns, color, fields.flag("until_seen", False))


def named_topic(fields: DeclaredFields, key: str, hint: str) -> str | None:
    if key not in fields:
        fields.missing(key, hint)
    return topic_of(fields.node(key), f"{key} of {fields.what}", fields.problems)
