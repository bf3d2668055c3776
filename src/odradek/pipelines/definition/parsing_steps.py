"""`steps:` of a definition: SQL, Python functions, aggregations, deduplication, joins, keyed state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.fields import Fields, text_of
from odradek.pipelines.definition.model import (
    Changes,
    Expectation,
    LatestRows,
    RunningAggregate,
    Step,
    View,
    Watermark,
)
from odradek.pipelines.definition.nodes import MappingNode, Scalar, value_places
from odradek.pipelines.definition.operations import (
    Aggregation,
    Deduplication,
    Join,
    KeyedState,
    Operation,
    PythonFunction,
    Sql,
    StreamJoin,
    Window,
)
from odradek.pipelines.definition.parsing_changes import parse_changes
from odradek.pipelines.definition.schemas import read_columns
from odradek.pipelines.definition.vocabulary import (
    Duration,
    JoinKind,
    Otherwise,
    StateClock,
    StateOrder,
    StreamJoinKind,
    Unbounded,
)

if TYPE_CHECKING:
    from odradek.pipelines.definition.column_types import Column
    from odradek.pipelines.definition.nodes import Node
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.definition.references import NamedExpression

OPERATIONS = ("sql", "python", "aggregate", "deduplicate", "join", "state")
STEP_KEYS = ("from", *OPERATIONS, "window", "by", "expect", "watermark", "schema", "view")
BELONGS_TO = {"window": ("aggregate",), "by": ("aggregate",), "schema": ("python", "state")}
WINDOW_KEYS = ("column", "size", "slide", "gap")
STATE_KEYS = ("key", "processor", "timeout", "clock", "order")
JOIN_KEYS = ("table", "stream", "on", "within", "how")
RENAMED = {"by": "key"}  # former spellings
INPUT_HINT = "name the input, a source or step: from: name"


def parse_step(name: Scalar, node: Node, problems: Problems) -> tuple[Step | None, View | None]:
    """The step, and its view if it has `view:`."""
    fields = Fields(node, STEP_KEYS, f"step '{name.text}'", problems)
    operation = parse_operation(fields)
    if operation is None:
        return None, None
    step = Step(name.text, operation, parse_expectations(fields), parse_watermark(fields), name.place)
    return step, parse_step_view(name, fields)


def parse_operation(fields: Fields) -> Operation | None:
    kind = fields.chosen(OPERATIONS, hint="for example sql: select …")
    if kind is None:
        return None
    for key, owners in BELONGS_TO.items():
        if key in fields and kind not in owners:
            fields.problems.error(
                fields.key_place(key), f"{key} of {fields.what} applies to {' or '.join(owners)}, not to {kind}"
            )
    if kind == "sql":
        return parse_sql(fields)
    if kind == "python":
        return parse_function(fields)
    inputs = fields.words("from", required=INPUT_HINT)
    if len(inputs) > 1:
        fields.problems.error(
            fields.place_of("from"),
            f"{fields.what} has several inputs, and {kind} takes one",
            "join or combine them in a SQL step",
        )
    if not inputs:
        return None
    if kind == "aggregate":
        return Aggregation(inputs[0], parse_aggregates(fields), fields.words("by"), parse_window(fields))
    if kind == "deduplicate":
        return parse_deduplication(fields, inputs[0])
    return parse_join(fields, inputs[0]) if kind == "join" else parse_state(fields, inputs[0])


def parse_sql(fields: Fields) -> Sql | None:
    if "from" in fields:
        fields.problems.error(
            fields.key_place("from"), f"{fields.what} has from, but its inputs are the tables of its SQL", "remove from"
        )
    text = fields.text("sql")
    return None if text is None else Sql(text, fields.place_of("sql"))


def parse_function(fields: Fields) -> PythonFunction | None:
    inputs = fields.words("from", required="name the function's inputs, sources or steps: from: [one, another]")
    function = fields.reference("python")
    columns = parse_columns(fields)
    return None if function is None or not inputs else PythonFunction(inputs, function, columns)


def parse_columns(fields: Fields) -> tuple[Column, ...] | None:
    node = fields.node("schema")
    return None if node is None else read_columns(node, f"schema of {fields.what}", fields.problems)


def parse_aggregates(fields: Fields) -> tuple[NamedExpression, ...]:
    aggregates = fields.expressions("aggregate")
    if not aggregates and isinstance(fields.node("aggregate"), MappingNode):
        fields.problems.error(
            fields.place_of("aggregate"),
            f"aggregate of {fields.what} is empty",
            "for example aggregate: {events: count(*)}",
        )
    return aggregates


def parse_window(fields: Fields) -> Window | None:
    node = fields.node("window")
    if node is None:
        return None
    inner = Fields(node, WINDOW_KEYS, f"window of {fields.what}", fields.problems)
    column = inner.text("column", required="name the column of event time: column: event_time")
    kind = inner.chosen(("size", "gap"), hint="size: 1 minute for windows of a length, or gap: 30 minutes for sessions")
    size, slide, gap = inner.duration("size"), inner.duration("slide"), inner.duration("gap")
    if column is None or kind is None or (size is None and gap is None):
        return None
    for key, duration in (("size", size), ("gap", gap)):
        if duration is not None and duration.milliseconds <= 0:
            inner.wrong(key, "longer than 0")
    if slide is not None and size is None:
        inner.problems.error(inner.key_place("slide"), f"slide of {inner.what} applies to size, not to gap")
    elif slide is not None and size is not None and not 0 < slide.milliseconds <= size.milliseconds:
        inner.wrong(
            "slide", f"longer than 0 and at most the size, {size}", "a longer slide would leave gaps between windows"
        )
    return Window(column, size, slide, gap, node.place)


def parse_watermark(fields: Fields) -> Watermark | None:
    node = fields.node("watermark")
    if node is None:
        return None
    inner = Fields(node, ("column", "delay"), f"watermark of {fields.what}", fields.problems)
    column = inner.text("column", required="name the column of event time: column: event_time")
    delay = inner.duration("delay", required="add how late an event may be: delay: 1 minute")
    return None if column is None or delay is None else Watermark(column, delay, node.place)


def parse_deduplication(fields: Fields, name: str) -> Deduplication | None:
    node = fields.node("deduplicate")
    assert node is not None
    inner = Fields(node, ("key", "within"), f"deduplicate of {fields.what}", fields.problems, RENAMED)
    key = inner.words("key", required="name the id columns: key: [event_id]")
    within = inner.duration("within")
    return Deduplication(name, key, within) if key else None


def parse_join(fields: Fields, name: str) -> Join | StreamJoin | None:
    node = fields.node("join")
    assert node is not None
    inner = Fields(node, JOIN_KEYS, f"join of {fields.what}", fields.problems)
    kind = inner.chosen(("table", "stream"), hint="table: pumps for a static source or step, or stream: clicks")
    on = inner.words("on", required="name columns that both sides have: on: [id]")
    if kind == "stream":
        return parse_stream_join(inner, name, on)
    if "within" in inner:
        inner.problems.error(inner.key_place("within"), f"within of {inner.what} applies to stream, not to table")
    table = inner.text("table")
    how = inner.choice("how", JoinKind, JoinKind.INNER)
    return None if table is None or not on else Join(name, table, on, how)


def parse_stream_join(inner: Fields, name: str, on: tuple[str, ...]) -> StreamJoin | None:
    stream = inner.text("stream")
    is_forever = is_word(inner.node("within"), Unbounded.FOREVER)
    hint = "add how far apart the event times of a match may be: within: 1 hour"
    within = None if is_forever else inner.duration("within", required=hint)
    how = inner.choice("how", StreamJoinKind, StreamJoinKind.INNER)
    is_bounded = within is not None or is_forever
    return StreamJoin(name, stream, on, within, how) if stream is not None and is_bounded and on else None


def is_word(node: Node | None, word: str) -> bool:
    return node is not None and text_of(node) == word


def parse_state(fields: Fields, name: str) -> KeyedState | None:
    node = fields.node("state")
    assert node is not None
    inner = Fields(node, STATE_KEYS, f"state of {fields.what}", fields.problems, RENAMED)
    key = inner.words("key", required="name the key columns: key: [id]")
    processor = inner.reference("processor")
    timeout = inner.duration("timeout")
    if timeout == Duration(0):
        inner.wrong("timeout", "longer than 0")
    clock = inner.choice("clock", StateClock, StateClock.PROCESSING)
    order = inner.choice("order", StateOrder, StateOrder.ARRIVAL)
    columns = parse_columns(fields)
    return KeyedState(name, key, processor, timeout, clock, columns, order) if key and processor is not None else None


def parse_expectations(fields: Fields) -> tuple[Expectation, ...]:
    node = fields.node("expect")
    if node is None:
        return ()
    if not isinstance(node, MappingNode):
        fields.wrong(
            "expect", "a mapping of names", "for example expect: {plausible: {check: pressure > 0, otherwise: drop}}"
        )
        return ()
    found = []
    for name, value in node.entries:
        short = text_of(value)  # `name: condition` alone warns
        if short is not None:
            found.append(Expectation(name.text, short, Otherwise.WARN, name.place, value.place))
            continue
        inner = Fields(value, ("check", "otherwise"), f"expectation '{name.text}' of {fields.what}", fields.problems)
        if not isinstance(value, MappingNode):
            continue
        check = inner.text("check", required="add a SQL condition: check: pressure > 0")
        otherwise = inner.choice("otherwise", Otherwise, Otherwise.WARN)
        if check is not None:
            found.append(Expectation(name.text, check, otherwise, name.place, inner.place_of("check")))
    return tuple(found)


VIEW_KEYS = ("from", "key", "order_by", "by", "aggregate", "changes", "url")


def parse_view(name: Scalar, node: Node, problems: Problems) -> View | None:
    fields = Fields(node, VIEW_KEYS, f"view '{name.text}'", problems)
    inputs = fields.words("from", required=INPUT_HINT)
    if len(inputs) > 1:
        problems.error(
            fields.place_of("from"),
            f"{fields.what} has several inputs, and a view takes one",
            "join them in a SQL step",
        )
    content, url = parse_view_content(fields), fields.text("url")
    return View(name.text, inputs[0], content, name.place, url=url) if inputs and content is not None else None


def parse_step_view(name: Scalar, fields: Fields) -> View | None:
    """`view:` of a step: a view of the step's rows, with the step's name."""
    node = fields.node("view")
    if node is None:
        return None
    inner = Fields(node, VIEW_KEYS[1:], f"view of {fields.what}", fields.problems)
    content = parse_view_content(inner) if isinstance(node, MappingNode) else None
    if content is None:
        return None
    return View(name.text, name.text, content, name.place, value_places(node), inner.text("url"))


def parse_view_content(fields: Fields) -> LatestRows | RunningAggregate | Changes | None:
    kind = fields.chosen(
        ("key", "aggregate", "changes"),
        hint="use key: [id] for the latest row of each key, or aggregate: {…} for a row per group",
    )
    for key, owner in (("order_by", "key"), ("by", "aggregate")):
        if kind is not None and key in fields and kind != owner:
            fields.problems.error(fields.key_place(key), f"{key} of {fields.what} applies to {owner}, not to {kind}")
    if kind == "key":
        key_columns = fields.words("key", required="name the key columns: key: [id]")
        return LatestRows(key_columns, fields.words("order_by")) if key_columns else None
    if kind == "aggregate":
        return RunningAggregate(fields.words("by"), parse_aggregates(fields))
    return parse_changes(fields)
