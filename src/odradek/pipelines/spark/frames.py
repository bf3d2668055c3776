"""Frames of rows: internal columns, the mark of event time, and a barrier for filters.

`__origin` is the record that a row was derived from. It gives outputs an id that is stable across replays, and dead
letters their original bytes. `__rejected` is the reason why a record was refused. Ends leave internal columns out, and
users never see them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import functions as F  # noqa: N812 - its usual name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame

    from odradek.pipelines.planning.plan import End, Flow

ORIGIN = "__origin"
REJECTED = "__rejected"
INTERNAL = (ORIGIN, REJECTED)
ORIGIN_FIELDS = ("topic", "partition", "offset", "key", "value", "headers")
PLACE_FIELDS = ORIGIN_FIELDS[:3]
RECORD_NAMES = frozenset({"_key", "_value", "_headers", "_timestamp", "_topic", "_partition", "_offset"})

NAMED = "odradek.named"  # metadata of the columns of the record, if the definition names all of them
# Spark's mark of a column of event time: an operator with state removes what the watermark has passed in this column.
WATERMARK_DELAY = "spark.watermarkDelayMs"
UNMARKED = "odradek.unmarked"  # metadata of a column whose mark is removed


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def column(name: str) -> Column:
    """A column of a frame, whatever characters its name has."""
    return F.col(quoted(name))


def actual_name(frame: DataFrame, name: str) -> str:
    """The column's name as the frame spells it."""
    return next(each for each in frame.columns if each.lower() == name.lower())


def origin_struct() -> Column:
    """The origin, from the columns of Spark's Kafka source."""
    return F.struct(*ORIGIN_FIELDS).alias(ORIGIN)


def has_origin(frame: DataFrame) -> bool:
    return ORIGIN in frame.columns


def without_internal(frame: DataFrame) -> DataFrame:
    return frame.drop(*INTERNAL)


def visible_names(names: Iterable[str], *, shows_records: bool) -> list[str]:
    """The columns that an end writes if it names none: without internal ones, and without those of the record if all
    of them are there and nobody named them."""
    shown = [name for name in names if name not in INTERNAL]
    is_whole = RECORD_NAMES.issubset(shown) and not shows_records
    return [name for name in shown if not (is_whole and name in RECORD_NAMES)]


def shows_records(frame: DataFrame) -> bool:
    """Whether the definition names all columns of the record."""
    marks = {each.name: each.metadata.get(NAMED) for each in frame.schema.fields}
    return all(marks.get(name) for name in RECORD_NAMES)


def with_records_shown(frame: DataFrame) -> DataFrame:
    """The frame, whose columns of the record ends write."""
    for each in frame.schema.fields:
        if each.name in RECORD_NAMES:
            frame = frame.withMetadata(each.name, {**each.metadata, NAMED: True})
    return frame


def event_times_of(frame: DataFrame) -> dict[str, int]:
    """The columns that Spark has marked as event time, with the delays of their watermarks."""
    marked = (each for each in frame.schema.fields if WATERMARK_DELAY in each.metadata)
    return {each.name: each.metadata[WATERMARK_DELAY] for each in marked}


def with_one_event_time(frame: DataFrame, name: str | None, inputs: Iterable[DataFrame] = ()) -> DataFrame:
    """The same rows, of which this column alone is marked as event time; none is if the name is None.

    Spark refuses an operator with two marks, which a copy of the column has as well. The end of a window has no mark of
    its own, because Spark marks the window: it gets the greatest delay of the inputs.
    """
    marks = [event_times_of(each) for each in (frame, *inputs)]
    delays = [delay for each in marks for delay in each.values()]
    time = actual_name(frame, name) if name is not None and delays else None
    if list(marks[0]) == ([] if time is None else [time]):
        return frame
    changed = {
        each.name: with_delay(each.metadata, marks[0].get(time, max(delays)) if each.name == time else None)
        for each in frame.schema.fields
        if each.name == time or each.name in marks[0]
    }
    return frame.select(
        *(
            column(each).alias(each, metadata=changed[each]) if each in changed else column(each)
            for each in frame.columns
        )
    )


def with_delay(metadata: dict[str, Any], delay: int | None) -> dict[str, Any]:
    """The metadata of a column that is event time, or of one that is not. The latter are not empty, because Spark's
    optimizer gives a column without metadata those of the column that it is computed from."""
    kept = {key: value for key, value in metadata.items() if key not in {WATERMARK_DELAY, UNMARKED}}
    return (
        {**kept, UNMARKED: True} if delay is None else {**kept, WATERMARK_DELAY: metadata.get(WATERMARK_DELAY, delay)}
    )


def with_filter_barrier(frame: DataFrame, time: str | None = None) -> DataFrame:
    """The same rows behind a filter that all of them pass, and below which Spark moves no other filter.

    Directly above a watermark, it is the watermark of all rows, also of those that a later filter removes. Above an
    operator with state, late rows are counted likewise. With `time`, the filter reads that column, so that Spark does
    not remove it from the rows of the operator below.
    """
    least = F.lit(0) if time is None else F.least(F.lit(0), F.hash(column(time)))
    # The id is not deterministic for Spark, so that its optimizer leaves the filter where it is.
    return frame.where(F.spark_partition_id() >= least)


class RowsByName(Protocol):
    """The rows of a batch, by table."""

    def rows(self, name: str) -> DataFrame: ...

    def of_end(self, end: End) -> DataFrame:
        """The rows that an end writes: those of its input without those that its target cannot store."""

    def groups(self, flow: Flow) -> DataFrame | None:
        """The columns of the groups of a batch, if these can change."""
