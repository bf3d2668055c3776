"""Checks for functions whose value is not determined by the rows: a replay, or another query, would compute another."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import RunningAggregate, TopicTarget, place_of
from odradek.pipelines.definition.operations import Aggregation, Sql
from odradek.pipelines.definition.sql_text import SqlError, parse_expression
from odradek.pipelines.planning.sql_parts import calls_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from odradek.pipelines.definition.model import Pipeline, Sink, Step, View
    from odradek.pipelines.definition.places import Place, Problems
    from odradek.pipelines.definition.references import NamedExpression
    from odradek.pipelines.planning.sql_parts import Call
    from odradek.pipelines.planning.streams import Streams

RANDOM = frozenset(("rand", "random", "randn", "randstr", "uuid", "shuffle", "uniform"))
BY_BATCH = frozenset(
    """
    monotonically_increasing_id spark_partition_id input_file_name input_file_block_start input_file_block_length
    """.split()  # noqa: SIM905 - a list would have a line for each name
)
BY_ARRIVAL = frozenset(  # of a group whose records are in several partitions
    """
    first first_value last last_value any_value mode collect_list collect_set array_agg listagg string_agg
    """.split()  # noqa: SIM905 - a list would have a line for each name
)
UNORDERED = re.compile(  # functions whose value does not depend on the order of the elements
    r"\b(?:sort_array|array_sort|size|array_size|cardinality|array_max|array_min|array_contains|exists|forall)\s*\(\s*$",
    re.IGNORECASE,
)
APPROXIMATE = frozenset(  # their state is compressed and merged with each batch
    """
    percentile_approx approx_percentile histogram_numeric kll_sketch_agg_bigint kll_sketch_agg_float
    kll_sketch_agg_double
    """.split()  # noqa: SIM905 - a list would have a line for each name
)
CLOCK = frozenset(
    """
    now current_timestamp current_date curdate current_time localtime localtimestamp unix_timestamp
    """.split()  # noqa: SIM905 - a list would have a line for each name
)
CLOCK_HINT = "use the time of the record, _timestamp, or a column of event time"
# Literals of the present: TIMESTAMP 'now', CAST('today' AS DATE).
PRESENT = re.compile(
    r"\b(?:(?:timestamp(?:_ltz|_ntz)?|date)\s*|cast\s*\(\s*)'\s*(now|today|tomorrow|yesterday)\s*'", re.IGNORECASE
)


def check_determinism(pipeline: Pipeline, streams: Streams, problems: Problems) -> None:
    for what, text, place in texts_of(pipeline, streams):
        for match in PRESENT.finditer(text):
            before = text[: match.start()].split("\n")
            problems.warning(
                place.inside(len(before), len(before[-1]) + 1),
                f"{what} reads the clock with '{match[1]}': the value depends on when a row is processed, and differs "
                "between sinks and after a replay",
                CLOCK_HINT,
            )
        for call in calls_in(text):
            at = place.inside(call.line, call.column)
            if call.name in RANDOM | BY_BATCH:
                problems.error(
                    at,
                    f"{what} uses {call.name}(), whose value differs between batches, sinks and replays",
                    "compute it from the row: xxhash64(_topic, _partition, _offset), or pmod(hash(id), 10) = 0 for a "
                    "sample",
                )
            elif call.name in APPROXIMATE:
                problems.warning(
                    at,
                    f"{what} uses {call.name}(), whose value is approximate, and depends on the batches within its "
                    "accuracy: a replay may have another",
                    "use an exact aggregate: percentile(x, 0.5), or counts of ranges of values",
                )
            elif call.name in BY_ARRIVAL and not UNORDERED.search(text_before(text, call)):
                problems.warning(
                    at,
                    f"{what} uses {call.name}(), whose value depends on the order in which the records of different "
                    "partitions arrive: a replay may have another",
                    "choose by a column: min_by(x, at) for the first, max_by(x, at) for the last, or "
                    f"sort_array({'collect_set' if call.name == 'collect_set' else 'collect_list'}(x))",
                )
            elif call.name == "aes_encrypt" and has_random_vector(call.arguments):
                problems.warning(
                    at,
                    f"{what} uses aes_encrypt() without an initialization vector: Spark draws one, and the value "
                    "differs between batches, sinks and replays",
                    "use it for what is only decrypted, not to compare, group or join by; or pass a vector that no "
                    "other value has, made from _topic, _partition and _offset",
                )
            elif call.name in CLOCK and not call.arguments:
                problems.warning(
                    at,
                    f"{what} reads the clock with {call.name}(): the value depends on when a row is processed, and "
                    "differs between sinks and after a replay",
                    CLOCK_HINT,
                )


def text_before(text: str, call: Call) -> str:
    lines = text.splitlines()[: call.line]
    return "\n".join([*lines[:-1], lines[-1][: call.column - 1]])


def has_random_vector(arguments: Sequence[str]) -> bool:
    """Whether a call of aes_encrypt (value, key, mode, padding, vector) has no vector, and a mode that needs one."""
    mode = arguments[2].strip("'\"").upper() if len(arguments) > 2 else "GCM"
    return mode != "ECB" and (len(arguments) < 5 or arguments[4] in {"''", '""'})


def check_windows_of_rows(pipeline: Pipeline, streams: Streams, problems: Problems) -> None:
    """Refuses OVER in expressions outside of SQL steps: the sinks of a batch would compute it over the batch alone."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    for what, text, place in expressions_of(pipeline, streams):
        with suppress(SqlError):
            if parse_expression(text).find(exp.Window) is not None:
                problems.error(
                    place,
                    f"{what} uses OVER, which would be computed over the rows of each batch alone",
                    "do this when you query a view or a table, or use engine: batch",
                )


def texts_of(pipeline: Pipeline, streams: Streams) -> Iterator[tuple[str, str, Place]]:
    """The SQL over streams: a description, the text and its place."""
    for step in pipeline.steps:
        if step.name in streams.names and isinstance(step.operation, Sql):
            yield f"step '{step.name}'", step.operation.text, step.operation.place
    yield from expressions_of(pipeline, streams)


def expressions_of(pipeline: Pipeline, streams: Streams) -> Iterator[tuple[str, str, Place]]:
    """The expressions over streams outside of SQL steps: a description, the text and its place."""
    for source in pipeline.sources:
        if source.name in streams.names:
            yield from expression_texts("column", source.columns, f"source '{source.name}'")
    for step in pipeline.steps:
        if step.name in streams.names:
            yield from step_texts(step)
    for view in pipeline.views:
        if isinstance(view.content, RunningAggregate):
            yield from expression_texts("aggregate", view.content.aggregates, f"view '{view.name}'")
    for sink in pipeline.sinks:
        yield from sink_texts(sink)
    ends: list[Sink | View] = [*pipeline.sinks, *pipeline.views]
    for end in ends:
        changes = end.changes
        if changes is not None and changes.deletes is not None:
            yield f"deletes of '{end.name}'", changes.deletes, place_of(end, "changes", "deletes")


def expression_texts(kind: str, named: Iterable[NamedExpression], what: str) -> Iterator[tuple[str, str, Place]]:
    for each in named:
        yield f"{kind} '{each.name}' of {what}", each.expression, each.expression_place


def step_texts(step: Step) -> Iterator[tuple[str, str, Place]]:
    what = f"step '{step.name}'"
    if isinstance(step.operation, Aggregation):
        yield from expression_texts("aggregate", step.operation.aggregates, what)
    for each in step.expectations:
        yield f"expectation '{each.name}' of {what}", each.check, each.check_place


def sink_texts(sink: Sink) -> Iterator[tuple[str, str, Place]]:
    if not isinstance(sink.target, TopicTarget):
        return
    if sink.target.key is not None:
        yield f"key of sink '{sink.name}'", sink.target.key, place_of(sink, "key")
    for text in sink.target.value:
        yield f"value of sink '{sink.name}'", text, place_of(sink, "value", text)
    yield from expression_texts("header", sink.target.headers, f"sink '{sink.name}'")
    if sink.target.deletes is not None:
        yield f"deletes of sink '{sink.name}'", sink.target.deletes, place_of(sink, "deletes")
