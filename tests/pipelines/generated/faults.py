"""Faults that can be planted in the planning and in the compiler, to show that drawn cases find them."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from unittest import mock

from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.classic.dataframe import DataFrame

from odradek.pipelines.definition.operations import Aggregation, Deduplication, StreamJoin
from odradek.pipelines.planning import splitting
from odradek.pipelines.planning import tables as planned_tables
from odradek.pipelines.planning.plan import GroupSql, PairSql
from odradek.pipelines.spark.computing import (
    groups,
    keyed_rows,
    row_checks,
    row_errors,
    selecting,
    stream_joins,
)
from odradek.pipelines.spark.computing import tables as computed_tables
from odradek.pipelines.spark.frames import column, without_internal
from odradek.pipelines.spark.writing import batches, latest_rows, stored_values, table_changes
from odradek.pipelines.sql import splicing
from odradek.pipelines.sql.joins import Bound
from tests.pipelines.generated.constructs import Construct
from tests.pipelines.generated.oracle import NO_EVENT_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    Change = Callable[[Callable[..., Any]], Callable[..., Any]]

GROUPS = (Construct.GROUP, Construct.GROUP_SQL)
JOINS = (Construct.STREAM_JOIN, Construct.STREAM_JOIN_SQL)
CURRENT = (Construct.KEYED_CURRENT,)
CHANGED = (Construct.CHANGES, Construct.HISTORY)
LATE = ("record: late", "record: at the watermark")


@dataclass(frozen=True, slots=True)
class Fault:
    """A change of functions, and the constructs that it changes: a case without one of each kind cannot show it."""

    name: str
    constructs: tuple[tuple[str, ...], ...]
    change: Change
    places: tuple[tuple[Any, str], ...]

    @contextmanager
    def plant(self) -> Iterator[None]:
        with ExitStack() as stack:
            for owner, name in self.places:
                stack.enter_context(mock.patch.object(owner, name, self.change(getattr(owner, name))))
            yield

    def may_show_in(self, constructs: Collection[str]) -> bool:
        return all(any(each in constructs for each in kinds) for kinds in self.constructs)


def fault(name: str, constructs: tuple[tuple[str, ...], ...], change: Change, attribute: str, *owners: Any) -> Fault:
    return Fault(name, constructs, change, tuple((owner, attribute) for owner in owners))


def without(*kinds: type[Any]) -> Change:
    """Tables of these kinds keep no state: they are computed for each micro-batch."""
    return lambda real: lambda table: not isinstance(table.made_by, kinds) and real(table)


def on_result(change: Callable[[Any], Any]) -> Change:
    """The function, whose result is changed."""
    return lambda real: lambda *arguments, **named: change(real(*arguments, **named))


def on_first(change: Callable[[Any], Any]) -> Change:
    """The function, whose first argument is changed."""
    return lambda real: lambda first, *arguments, **named: real(change(first), *arguments, **named)


def first_argument(_real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda first, *_arguments, **_named: first


def keeping_in_streams(real: Callable[..., Any]) -> Callable[..., Any]:
    def changed(frame: Any, table: str, checks: Any, rows: Any, *arguments: Any, **named: Any) -> Any:
        judged = real(frame, table, checks, rows, *arguments, **named)
        return replace(judged, rows=rows) if frame.frame.isStreaming else judged

    return changed


def without_time_check(real: Callable[..., Any]) -> Callable[..., Any]:
    def changed(frame: Any, table: str, checks: Any, *arguments: Any, **named: Any) -> Any:
        others = [each for each in checks if each.name != NO_EVENT_TIME]
        return real(frame, table, others, *arguments, **named)

    return changed


def delayed(form: str) -> Change:
    """The delay of a watermark is another one."""
    return lambda real: lambda frame, column, delay: real(frame, column, form.format(delay))


def doubled(match: Any) -> Any:
    return match if match.high is None else replace(match, high=Bound(match.high.ms * 2, match.high.is_open))


def bounded(match: Any) -> Any:
    return match if match.high is not None else replace(match, low=Bound(-600_000), high=Bound(600_000))


def not_rewritten(*names: str) -> Change:
    return lambda real: lambda call: call.name not in names and real(call)


def counting_nulls(real: Callable[..., Any]) -> Callable[..., Any]:
    def changed(query: Any, call: Any) -> str:
        made = str(real(query, call))
        return made.replace("collect_set(", "collect_set(struct(") + ")" if call.name == "count" else made

    return changed


def counting_all(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda query, call: (
        str(real(query, call)).replace("collect_set(", "collect_list(").replace("array_distinct", "")
    )


def reading_sources(real: Callable[..., Any]) -> Callable[..., Any]:
    """A query of WITH that has the name of a source is not read."""

    def changed(*arguments: Any) -> Any:
        made = []
        for block in real(*arguments):
            parts = (
                replace(each, renamed={name: new for name, new in each.renamed.items() if name not in {"a", "b"}})
                for each in block.parts
            )
            made.append(replace(block, parts=tuple(parts)))
        return tuple(made)

    return changed


def by_name(parts: Any) -> Any:
    made, *others = map(without_internal, parts)
    for each in others:
        made = made.unionByName(each, allowMissingColumns=True)
    return made


def two_at_most(text: str) -> str:
    start, end = text.index("(") + 1, text.index(", ")
    return f"{text[:start]}slice({text[start:end]}, 1, 2){text[end:]}"


def untried(value: str, *, is_in_lambda: bool) -> str:
    return f"named_struct('{row_errors.IT}', {value})"


def not_refused(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: replace(real(*arguments), condition="false")


def one_sided(match: Any) -> Any:
    return replace(match, low=None)


def two_numbers(frame: Any) -> Any:
    return frame.withColumn("i", F.least("i", F.lit(2)))


def true_for_null(text: str) -> str:
    return text.replace(", false)", ", true)")


def never(*_arguments: Any) -> None:
    """In place of a condition, or of a check."""


def none_deleted(frame: Any) -> Any:
    return frame.withColumn(table_changes.IS_DELETED, F.lit(False))


def without_deletes(real: Callable[..., Any]) -> Callable[..., Any]:
    def changed(frame: Any, pipeline: Any, end: str, target: Any, *others: Any) -> Any:
        return real(frame, pipeline, end, replace(target, deletes=None), *others)

    return changed


def as_it_is(field: Any, _dialect: str) -> Any:
    return column(field.name)


def instead(replacement: Any) -> Change:
    return lambda _real: replacement


def order_alone(_names: Any, key: Any, order_by: Any) -> tuple[str, ...]:
    return tuple(name for name in order_by if name not in key)


def same_key(columns: dict[str, str]) -> dict[str, str]:
    return dict.fromkeys(columns, next(iter(columns.values())))


BARRIERS = (groups, stream_joins, computed_tables, keyed_rows)
JUDGED = (computed_tables,)
FAILING = ("record: short array", "record: text that is no number")
CHECK, STATE = (Construct.CHECK,), (Construct.STATE, Construct.STATE_EVENT)
KEYED = (*CURRENT, Construct.KEYED_BY_ARRIVAL, Construct.KEYED_BY_ORDER, Construct.CHANGES, Construct.HISTORY)
DISTINCT = ((Construct.COUNT_DISTINCT,),)
DUPLICATES = ((Construct.DEDUPLICATE,), ("record: duplicate",))
FAULTS = {
    each.name: each
    for each in (
        fault("groups of each batch", (GROUPS,), without(Aggregation, GroupSql), "_keeps_state", splitting),
        fault("duplicates of each batch", DUPLICATES, without(Deduplication), "_keeps_state", splitting),
        fault("pairs of each batch", (JOINS,), without(StreamJoin, PairSql), "_keeps_state", splitting),
        fault("third lost", ((Construct.GENERATOR,),), on_result(two_at_most), "_rows_of", selecting),
        fault("checks after state", (CHECK, GROUPS), keeping_in_streams, "judged", *JUDGED),
        fault("bound doubled", (JOINS,), on_first(doubled), "conditions", stream_joins),
        fault("bound one-sided", (JOINS,), on_first(one_sided), "conditions", stream_joins),
        fault("forever evicting", ((Construct.FOREVER,),), on_first(bounded), "conditions", stream_joins),
        fault("early watermark", (), delayed("0 seconds"), "withWatermark", DataFrame),
        fault("row at the watermark kept", (LATE,), delayed("{} 1 millisecond"), "withWatermark", DataFrame),
        fault("numbers bounded", (STATE,), on_result(two_numbers), "keyed_state", computed_tables),
        fault("null is met", (CHECK,), on_result(true_for_null), "_condition", row_checks),
        fault("having does not delete", (CURRENT, (Construct.HAVING,)), instead(never), "lost_groups", batches),
        fault("tombstone as record", ((Construct.TOMBSTONES,),), without_deletes, "topic_record", computed_tables),
        fault("older change counts", (CHANGED,), instead(never), "discard_outdated", table_changes.Applying),
        fault("history not closed", ((Construct.HISTORY,),), instead(never), "_next_sequence", table_changes.Applying),
        fault("deletion as row", (CHANGED,), on_result(none_deleted), "with_deletions", batches),
        fault("ties by arrival", ((Construct.KEYED_BY_ORDER,),), instead(order_alone), "whole_order", batches),
        fault("group key renamed", (CURRENT,), on_result(same_key), "_key_columns", latest_rows),
        fault("null event time kept", (("record: null event time",),), without_time_check, "judged", *JUDGED),
        fault("distinct with null", DISTINCT, counting_nulls, "_rewritten", splicing),
        fault("distinct of lists", DISTINCT, counting_all, "_rewritten", splicing),
        fault("ties of max_by", (GROUPS,), not_rewritten("max_by", "min_by"), "_is_rewritten", splicing),
        fault("mark kept", (GROUPS,), first_argument, "with_one_event_time", groups, stream_joins, keyed_rows),
        fault("barrier lost", (LATE, (Construct.WHERE,)), first_argument, "with_filter_barrier", *BARRIERS),
        fault("source for query", ((Construct.HIDDEN,),), reading_sources, "blocks_of", planned_tables),
        fault("union by name", ((Construct.UNION_ALL,),), instead(by_name), "united", computed_tables),
        fault("row error as nothing", (FAILING,), not_refused, "refused_rows", selecting),
        fault("row error stops", (FAILING,), instead(untried), "tried", row_errors),
        fault("unstorable row written", (KEYED,), instead(never), "check_of_end", *JUDGED),
        fault("−0.0 stored", (("record: −0.0",),), instead(as_it_is), "_stored_value", stored_values),
    )
}
