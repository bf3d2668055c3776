"""Expectations and implicit checks over rows: which rows a table keeps, which are dead letters, and what is counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.spark.computing.counts import Count, Kind
from odradek.pipelines.spark.computing.row_errors import IT, register_try, tried
from odradek.pipelines.spark.computing.rows import ROW, all_of, struct_of, text_of
from odradek.pipelines.spark.computing.selecting import over_rows
from odradek.pipelines.spark.frames import PLACE_FIELDS, REJECTED, literal, quoted
from odradek.pipelines.spark.sessions.failures import STOPS
from odradek.pipelines.sql.row_errors import expression_may_fail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.pipelines.planning.plan import Check
    from odradek.pipelines.spark.computing.encoding import Encoded
    from odradek.pipelines.spark.computing.rows import Frame, Rows
    from odradek.pipelines.sql.columns import Columns

REFUSING = frozenset({Otherwise.DROP, Otherwise.QUARANTINE})
MOST_BITS = 62


@dataclass(frozen=True, slots=True)
class Made:
    """The rows of a table behind its checks, or those that an end writes, as columns of a frame."""

    frame: Frame
    rows: Rows
    refused: tuple[Rows, ...] = ()  # for dead letters, with the reason
    counts: tuple[Count, ...] = ()
    must_hold: tuple[str, ...] = ()  # conditions that raise an error instead of returning false
    encoded: Encoded | None = None  # the records of a topic's end


def judged(
    frame: Frame,
    table: str,
    checks: Sequence[Check],
    rows: Rows,
    step: str = "",
    *,
    is_owned: bool = True,
    types: Columns | None = None,
) -> Made:
    """The rows that meet the checks. Only the flow that owns the table counts and writes those that do not; `step` is
    the declared step of a hidden table, and `types` has what is known of the table's columns."""
    if not checks:
        return Made(frame, rows)
    met = _conditions(frame, table, checks, rows, types)
    counts: list[Count] = []
    if is_owned:
        counts.append(Count(Kind.CHECKED, table, rows.count()))
        counts += [Count(Kind.UNMET, table, rows.count(f"not {met[each.name]}"), each) for each in checks]
    place = [frame.origin(name) for name in PLACE_FIELDS] if frame.has_origin and not rows.is_many else []
    stopping = [each for each in checks if each.otherwise is Otherwise.FAIL]
    must_hold = tuple(
        rows.all_hold_or(met[each.name], f"raise_error({_message(step or table, each, place)}) is null")
        for each in stopping
    )
    refusing = [met[each.name] for each in checks if each.otherwise in REFUSING]
    kept = rows.narrowed(frame.add(f"__kept_{table}", rows.filtered(all_of(refusing)))) if refusing else rows
    quarantining = [each for each in checks if each.otherwise is Otherwise.QUARANTINE]
    refused = (_refused(frame, table, rows, quarantining, met),) if quarantining and is_owned else ()
    return Made(frame, kept, refused, tuple(counts), must_hold)


def _conditions(
    frame: Frame, table: str, checks: Sequence[Check], rows: Rows, types: Columns | None
) -> Mapping[str, str]:
    """SQL for whether a row meets each check, never null. A row that does not meet an implicit check meets all others.

    The checks of a single row are evaluated once, to a set of bits, because each is used by a count, by the reason of a
    dead letter and by the filter."""
    implicit, expected = ([each for each in checks if each.is_implicit is kind] for kind in (True, False))
    failing = {each.name for each in checks if expression_may_fail(each.condition, types)}
    met = {each.name: _condition(frame, each, rows, fails=each.name in failing) for each in (*implicit, *expected)}
    if rows.is_many or not (failing or len(checks) > 1) or len(checks) > MOST_BITS:
        first = all_of([met[each.name] for each in implicit])
        return {**met, **{each.name: f"if({first}, {met[each.name]}, true)" for each in expected if implicit}}
    bits = {name: f"{1 << number}L" for number, name in enumerate(met)}
    unmet = " + ".join(f"if({met[each.name]}, 0L, {bits[each.name]})" for each in expected) or "0L"
    for each in reversed(implicit):
        unmet = f"if({met[each.name]}, {unmet}, {bits[each.name]})"
    column = quoted(frame.add(f"__unmet_{table}", rows.mapped(unmet)))
    return {name: f"({column} & {bit}) = 0" for name, bit in bits.items()}


def _condition(frame: Frame, check: Check, rows: Rows, *, fails: bool) -> str:
    """Whether a row meets a check; null and what cannot be computed are not met."""
    condition = over_rows(check.condition, rows)
    if fails:
        register_try(frame.session)
        condition = f"{tried(condition, is_in_lambda=rows.is_many)}.{IT}"
    return f"coalesce({condition}, false)"


def _refused(frame: Frame, table: str, rows: Rows, checks: Sequence[Check], met: Mapping[str, str]) -> Rows:
    """The rows for the dead-letter topic; the reason is the first check that a row does not meet."""
    reason = " ".join(f"when not {met[each.name]} then {literal(each.reason)}" for each in checks)
    reason = f"case {reason} end"
    if not rows.is_many:
        column = frame.add(f"__reason_{table}", rows.mapped(reason))
        return replace(rows, fields={**rows.fields, REJECTED: (column,)}, condition=f"{quoted(column)} is not null")
    unmet = rows.filtered(f"not ({all_of([met[each.name] for each in checks])})")
    fields = {name: text_of(path) for name, path in rows.fields.items()}
    made = f"transform({unmet}, {ROW} -> {struct_of({**fields, REJECTED: reason})})"
    several = type(rows).several(frame.add(f"__refused_{table}", made), [*fields, REJECTED])
    return replace(several, shows_records=rows.shows_records)


def _message(step: str, check: Check, place: Sequence[str]) -> str:
    """The message of a failed expectation, with the topic, partition and offset of the record if they are known."""
    said = f"step '{step}': a row does not meet '{check.name}', {STOPS}"
    if not place:
        return literal(said)
    topic, partition, offset = place
    return f"concat({literal(f'{said} (record of ')}, {topic}, '-', {partition}, ' at offset ', {offset}, ')')"
