"""Parses `view.yml`; reports all problems together, with their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.examples.declared_fields import DeclaredFields
from odradek.examples.live_view.definition import (
    Chart,
    Content,
    Counts,
    Episodes,
    Panel,
    Reading,
    Readings,
    Rows,
    Side,
    Topics,
    ViewDefinition,
)
from odradek.examples.live_view.parsing_figures import inner, named_topic, parse_figures
from odradek.pipelines.definition.fields import text_of, topic_of
from odradek.pipelines.definition.nodes import ListNode, MappingNode, Node, Scalar

if TYPE_CHECKING:
    from odradek.pipelines.definition.places import Problems

KEYS = ("title", "panels", "readings")
KINDS = {
    "topics": Side.LEFT,
    "figures": Side.RIGHT,
    "episodes": Side.LEFT,
    "counts": Side.RIGHT,
    "rows": Side.RIGHT,
    "chart": Side.LEFT,
}
PANELS_HINT = "write panels: {topics: {topics: [input, output]}}"
DEFAULT_ENDS_AFTER_S = 30.0
DEFAULT_SILENT_AFTER_S = 45.0


def parse_view(root: Node, problems: Problems) -> ViewDefinition | None:
    """The live view, or None if there are errors."""
    fields = DeclaredFields(root, KEYS, "the view", problems)
    title = fields.text("title", required="write what the view shows: title: …")
    panels = [
        panel
        for key, node in fields.entries("panels", "titles to panels")
        if (panel := parse_panel(key, node, problems)) is not None
    ]
    if not problems.errors and not panels:
        fields.missing("panels", PANELS_HINT)
    found = ViewDefinition(title or "", tuple(panels), parse_readings(fields))
    if not problems.errors and not found.topics:
        fields.missing("topics in its panels", PANELS_HINT)
    return None if problems.errors else found


def parse_readings(fields: DeclaredFields) -> Readings | None:
    readings = inner(fields, "readings", ("topic", "silent_after", "values"))
    if readings is None:
        return None
    topic = named_topic(readings, "topic", "name the topic whose keys are the entities")
    entries = readings.entries("values", "titles to numbers")
    values = [found for key, node in entries if (found := parse_reading(key, node, readings.problems)) is not None]
    if not entries:
        readings.missing("values", "write values: {Pressure: {column: pressure, low: 60, high: 150}}")
    if topic is None:
        return None
    return Readings(topic, readings.seconds("silent_after", DEFAULT_SILENT_AFTER_S), tuple(values))


def parse_reading(key: Scalar, node: Node, problems: Problems) -> Reading | None:
    fields = DeclaredFields(node, ("column", "unit", "low", "high"), f"reading '{key.text}'", problems)
    column = fields.text("column", required="name the field of the record, with dots for fields of fields")
    low, high = fields.number("low", 0.0), fields.number("high", 0.0)
    if not low < high:
        fields.wrong("high", "a number above low")
    return None if column is None else Reading(key.text, column, fields.text("unit") or "", low, high)


def parse_panel(key: Scalar, node: Node, problems: Problems) -> Panel | None:
    fields = DeclaredFields(node, (*KINDS, "side"), f"panel '{key.text}'", problems)
    kind = fields.chosen(tuple(KINDS))
    if kind is None:
        return None
    side = fields.choice("side", Side, KINDS[kind])
    inner = fields.node(kind)
    assert inner is not None
    content = parse_content(kind, inner, key.text, problems)
    return None if content is None else Panel(key.text, content, side)


def parse_content(kind: str, node: Node, title: str, problems: Problems) -> Content | None:
    what = f"{kind} of panel '{title}'"
    if kind == "topics":
        items = node.items if isinstance(node, ListNode) else (node,)
        topics = [topic for item in items if (topic := topic_of(item, f"a topic of panel '{title}'", problems))]
        return Topics(tuple(topics)) if topics else None
    if kind == "figures":
        return parse_figures(node, what, problems)
    if kind == "chart":
        fields = DeclaredFields(node, ("topic",), what, problems)
        topic = required_topic(fields)
        return None if topic is None else Chart(topic)
    if kind == "counts":
        return parse_counts(node, what, problems)
    return parse_rows(node, what, problems) if kind == "rows" else parse_episodes(node, what, problems)


def parse_counts(node: Node, what: str, problems: Problems) -> Counts | None:
    fields = DeclaredFields(node, ("topic", "column", "header"), what, problems)
    topic, chosen = required_topic(fields), fields.chosen(("column", "header"))
    if topic is None or chosen is None:
        return None
    return Counts(topic, fields.text("column"), fields.text("header"))


def parse_episodes(node: Node, what: str, problems: Problems) -> Episodes | None:
    fields = DeclaredFields(node, ("topic", "key", "columns", "since", "ends_after"), what, problems)
    topic = required_topic(fields)
    key = fields.words("key", required="name the columns that tell one episode from another")
    columns = parse_columns(fields) or tuple((name, name) for name in key)
    if topic is None or not key:
        return None
    return Episodes(topic, key, columns, fields.text("since"), fields.seconds("ends_after", DEFAULT_ENDS_AFTER_S))


def parse_rows(node: Node, what: str, problems: Problems) -> Rows | None:
    fields = DeclaredFields(node, ("view", "columns", "order_by", "descending"), what, problems)
    view = fields.text("view", required="name a view or table of the pipeline")
    columns = parse_columns(fields)
    if not columns and "columns" not in fields:
        fields.missing("columns", "write columns: {title: column}")
    if view is None or not columns:
        return None
    return Rows(view, columns, fields.text("order_by"), fields.flag("descending", False))


def parse_columns(fields: DeclaredFields) -> tuple[tuple[str, str], ...]:
    """Titles and columns; a list names columns that are their own titles."""
    node = fields.node("columns")
    if node is None or not isinstance(node, MappingNode):
        return tuple((name, name) for name in fields.words("columns"))
    found = []
    for title, column in node.entries:
        name = text_of(column)
        if name is None:
            fields.problems.error(column.place, f"'{title.text}' must be the name of a column")
        else:
            found.append((title.text, name))
    return tuple(found)


def required_topic(fields: DeclaredFields) -> str | None:
    if "topic" not in fields:
        fields.missing("topic", "name the topic that feeds it")
    return fields.topic("topic")
