"""Results depend on rows alone: which calls are refused, and what may fail for a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.operations import Aggregation
from odradek.pipelines.planning.plan import GroupSql, PairSql, RowSql, StaticSql
from odradek.pipelines.planning.verdicts import Code, Refusal
from odradek.pipelines.planning.written import written_in
from odradek.pipelines.sql.functions import HASHED, MAY_FAIL, reads_clock, undetermined
from odradek.pipelines.sql.row_errors import failing, is_number_but_0
from odradek.pipelines.sql.text import exp, parse_any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.pipelines.definition.places import Place
    from odradek.pipelines.planning.plan import End, Plan, Table
    from odradek.pipelines.sql.blocks import Part

SELDOM = frozenset(("sum", "avg", "+", "-", "*"))  # an overflow


def determinism(plan: Plan) -> Iterator[Refusal]:
    """Refuses calls whose result the rows do not determine."""
    for written in written_in(plan):
        for call in written.query.calls:
            what = call.name
            advice = undetermined(what, call.parent)
            if advice is not None:
                yield _undetermined(written.subject, what, written.place(call.span[0]), advice)
            if reads_clock(what, len(call.arguments)):
                reads = f"{written.subject.described} reads the clock by {what}"
                message = f"{reads}: rows that are read again have another result"
                hint = "use a time of the row, such as _timestamp of a record"
                yield Refusal(None, written.subject, written.place(call.span[0]), message, hint)
    for table in plan.tables.values():
        made = table.made_by
        if isinstance(made, StaticSql):
            tree = parse_any(made.part.text)
            yield from _random_calls(table, made.part, tree)
            yield from _samples(table, made.part, tree)
        elif isinstance(made, RowSql | GroupSql):
            yield from _samples(table, made.query.part, made.query.tree)


def _undetermined(subject: Table | End, what: str, place: Place, advice: str) -> Refusal:
    message = f"{subject.described} uses {what}, which the rows do not determine"
    return Refusal(Code.UNDETERMINED, subject, place, message, f"use {advice}")


def _samples(table: Table, part: Part, tree: exp.Expr) -> Iterator[Refusal]:
    """A sample of a static table has other rows in each batch."""
    if tree.find(exp.TableSample):
        advice = "a condition, such as where pmod(xxhash64(id), 10) = 0"
        yield _undetermined(table, "TABLESAMPLE", table.place_in_sql(part.start), advice)


def _random_calls(table: Table, part: Part, tree: exp.Expr) -> Iterator[Refusal]:
    """A static table is read again in each batch: its rows must be the same."""
    for node in tree.find_all(exp.Anonymous):
        name = str(node.this).lower()
        if undetermined(name) == HASHED:
            yield _undetermined(table, name, table.place_in_sql(node.meta["start"] + part.start), HASHED)


def uncaught(plan: Plan) -> Iterator[Refusal]:
    """Warns of what may fail for a row where the error cannot be caught: in aggregates, and in SQL that Spark runs as
    it is written, such as joins with tables."""
    for written in written_in(plan):
        made, query = getattr(written.subject, "made_by", None), written.query
        is_as_written = isinstance(made, GroupSql | Aggregation | PairSql)
        is_as_written |= isinstance(made, RowSql) and not made.shape.is_plain and not written.is_expression
        for node, name in failing(query) if is_as_written else ():
            if name in SELDOM or is_number_but_0(node.args.get("expression")):
                continue
            has = f"{written.subject.described} has '{name}'"
            message = f"{has}, and a row for which it fails stops the pipeline here"
            hint = f"write {MAY_FAIL[name]}, or compute it in a step before, where such a row is a dead letter"
            yield Refusal(None, written.subject, written.place(query.span(node)[0]), message, hint)
