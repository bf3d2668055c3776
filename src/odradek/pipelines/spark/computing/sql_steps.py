"""SQL that Spark runs as it is written: static tables, joins with tables, unions, and what selects from pairs."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from odradek.pipelines.planning.plan import LEFT, RIGHT
from odradek.pipelines.spark.frames import INTERNAL, ORIGIN, has_origin, quoted, without_internal
from odradek.pipelines.sql.query import Join
from odradek.pipelines.sql.splicing import spliced, with_tables
from odradek.pipelines.sql.text import exp, outside_brackets, parse_any, tables_of, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.planning.plan import RowSql
    from odradek.pipelines.sql.joins import Pairs
    from odradek.pipelines.sql.query import Query, Reference
    from odradek.pipelines.sql.text import Span


def run_text(
    session: SparkSession, text: str, renamed: Mapping[str, str], inputs: Mapping[str, DataFrame]
) -> DataFrame:
    """The rows of a query. `renamed` has the tables that stand for names of its text, `inputs` the frames of tables."""
    frames = {name.lower(): (f"__table_{number}", frame) for number, (name, frame) in enumerate(inputs.items())}
    views = {}
    for name in tables_of(parse_any(text)):
        view, frame = frames[renamed.get(name.lower(), name).lower()]
        frame.createOrReplaceTempView(view)
        views[name.lower()] = view
    return session.sql(with_tables(text, views))


def row_by_row(made: RowSql, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of a SELECT over a stream and tables, with the origin of the rows of the stream."""
    (stream,) = made.shape.streams
    frames = {name: without_internal(frame) for name, frame in inputs.items()}
    if made.pairs is not None:
        return _of_pairs(made.query, made.pairs, stream, frames)
    text, query = made.query.part.text, made.query
    if has_origin(inputs[stream]):
        frames[stream] = with_origin_last(inputs[stream])
        text = _with_origin(query, stream, {each.table: frames[each.table].columns for each in query.tables})
    return run_text(frames[stream].sparkSession, text, query.part.renamed, frames)


def with_origin_last(frame: DataFrame) -> DataFrame:
    """The frame without other internal columns."""
    return frame.select(*(quoted(name) for name in frame.columns if name not in INTERNAL), ORIGIN)


def united(parts: Sequence[DataFrame]) -> DataFrame:
    """The rows of all parts, by position; with their origin if all have one."""
    have_origins = all(map(has_origin, parts))
    return reduce(
        lambda one, other: one.union(other), map(with_origin_last if have_origins else without_internal, parts)
    )


def _with_origin(query: Query, stream: str, columns: Mapping[str, Sequence[str]]) -> str:
    """The text with the origin as a column, which a `*` of SELECT includes. A `*` in a call stands for the others."""
    start = query.part.start
    changes = {
        each.span: ", ".join(
            f"{quoted(table.alias)}.{quoted(name)}"
            for table in query.tables
            if each.table in {None, table.alias}
            for name in columns[table.table]
            if name not in INTERNAL
        )
        for each in query.references()
        if each.parts == ("*",)
    }
    alias = next(each.alias for each in query.tables if each.table == stream)
    if not any(each.star_of is not None and each.star_of.lower() in {"", alias.lower()} for each in query.items):
        at = _start_of(query, "FROM")
        changes[at, at] = f", {quoted(alias)}.{ORIGIN} "
    return spliced(query.part.text, (start, start + len(query.part.text)), changes, start)


def _start_of(query: Query, *kinds: str) -> int:
    """Where the first clause of these kinds begins; the end of the text if there is none."""
    tokens = tokens_of(query.part.text)
    found = [tokens[each].start for each in outside_brackets(tokens) if tokens[each].kind in kinds]
    return (found[0] if found else len(query.part.text)) + query.part.start


def _of_pairs(query: Query, pairs: Pairs, name: str, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """A SELECT over the pairs of a join, in which the prefixes of columns stand for the tables of the join. Further
    conditions of ON filter the pairs."""
    start, text = query.part.start, query.part.text
    columns = _Columns(query, pairs, inputs[name].columns)
    changes: dict[Span, str] = {}
    whole = {each.span for each in query.items if isinstance(each.tree, exp.Column)}
    for each in query.references():
        if each.item is None and each.table in columns.prefixes:
            is_unnamed = each.span in whole and not _has_alias(query, each.span)
            changes[each.span] = columns.path(each) + (f" AS {quoted(each.parts[-1])}" if is_unnamed else "")
    for item in query.items:
        if item.star_of is not None:
            changes[item.span] = ", ".join(columns.star(item.star_of, item.excepted))
    begin, end = _start_of(query, "FROM"), _start_of(query, "LATERAL", "WHERE")
    wanted = [*pairs.residual, *([] if query.where is None else [query.where])]
    condition = " AND ".join(f"({spliced(text, span, changes, start)})" for span in wanted)
    changes = {span: new for span, new in changes.items() if not begin <= span[0] < end}
    changes[begin, end] = f"FROM {quoted(name)} "
    if query.where is not None:
        changes[query.where] = condition
    elif condition:
        changes[start + len(text), start + len(text)] = f" WHERE {condition}"
    written = spliced(text, (start, start + len(text)), changes, start)
    return run_text(inputs[name].sparkSession, written, query.part.renamed, inputs)


def _has_alias(query: Query, span: Span) -> bool:
    """Whether an alias follows an item of SELECT."""
    tokens = tokens_of(query.part.text)
    behind = next((each for each in tokens if each.start + query.part.start >= span[1]), None)
    return behind is not None and behind.kind not in {"COMMA", "FROM"}


class _Columns:
    """The columns of pairs by the tables of the join."""

    def __init__(self, query: Query, pairs: Pairs, columns: Sequence[str]) -> None:
        self._query, self._how, self._columns = query, pairs.how, columns
        self._using = {name.lower() for name in pairs.right.using}
        self.prefixes = {pairs.left.alias: LEFT, pairs.right.alias: RIGHT}

    def path(self, reference: Reference) -> str:
        first, *fields = reference.parts
        table = reference.table or ""
        is_bare = len(tokens_of(self._query.text(reference.span))) == 2 * len(reference.parts) - 1
        if first.lower() in self._using and is_bare:
            return ".".join((self._key(first), *map(quoted, fields)))
        return ".".join(map(quoted, (self.prefixes[table] + first, *fields)))

    def star(self, owner: str, excepted: Sequence[str]) -> Iterator[str]:
        """The columns of a `*`; those of USING come first, and once."""
        left_out = {each.lower() for each in excepted}
        owners = {alias.lower(): prefix for alias, prefix in self.prefixes.items()}
        if not owner:
            keys = [each for each in self._columns if each.startswith(LEFT) and each[2:].lower() in self._using]
            yield from (
                f"{self._key(each[2:])} AS {quoted(each[2:])}" for each in keys if each[2:].lower() not in left_out
            )
            left_out |= self._using
        for prefix in [owners[owner.lower()]] if owner else [LEFT, RIGHT]:
            for name in (each[2:] for each in self._columns if each.startswith(prefix)):
                if name.lower() not in left_out:
                    yield f"{quoted(prefix + name)} AS {quoted(name)}"

    def _key(self, name: str) -> str:
        """A column of USING, of the side that has it in every row."""
        left, right = quoted(LEFT + name), quoted(RIGHT + name)
        if self._how is Join.FULL:
            return f"coalesce({left}, {right})"
        return right if self._how is Join.RIGHT else left
