"""The texts of versions 1 and 2 of the fingerprints, to compare a definition with a checkpoint of that version.

Those of version 1 contain SQL as sqlglot writes it, which may differ between its releases: a query whose text differs
is also compared by its normalised parts. Those of version 2 leave out the aggregate functions of sketches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.operations import Aggregation, Sql
from odradek.pipelines.planning.queries import query_of
from odradek.pipelines.planning.sql_parts import SKETCHES, normalised

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.pipelines.definition.model import Step
    from odradek.pipelines.definition.references import NamedExpression

    Facts = Mapping[str, str]

NOTHING = "nothing"


def former_groups_text(by: Iterable[str], aggregates: Iterable[NamedExpression]) -> str:
    return f"by {', '.join(by) or NOTHING}: {', '.join(each.expression for each in aggregates)}"


def former_query_text(step: Step) -> str:
    """The groups, aggregates and joins of a query."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    query = query_of(step)
    if query is None:
        return NOTHING
    kinds = (exp.Group, exp.AggFunc, exp.Distinct, exp.Join, exp.Union)
    parts = [each for each in query.find_all(*kinds) if not isinstance(each.parent, exp.AggFunc)]
    return "; ".join("UNION" if isinstance(each, exp.Union) else each.sql("spark") for each in parts) or NOTHING


def former_text(step: Step, text: str, window: str) -> str:
    """The text of a step. The state of `within` has another form since, so that its text must differ."""
    operation = step.operation
    if isinstance(operation, Aggregation):
        return window + former_groups_text(operation.by, operation.aggregates)
    return former_query_text(step) if isinstance(operation, Sql) else text


def same_query(stored: str, now: str) -> bool:
    """Whether two texts of a query have the same parts."""
    return sorted(map(normalised, stored.split("; "))) == sorted(now.split("; "))


def adopted(stored: Facts, now: Facts, former: Facts) -> dict[str, str]:
    """The facts by the rules of version 1, with the stored text of each query that has the same parts. It leaves out
    the sketches that sqlglot does not know."""

    def is_same(what: str) -> bool:
        return any(same_query(stored[what], each) for each in (now[what], without_sketches(now[what])))

    return {**former, **{what: text for what, text in stored.items() if what in now and is_same(what)}}


def adopted_without_sketches(stored: Facts, now: Facts) -> dict[str, str]:
    """The facts, with the stored text of each query that has the same parts by the rules of version 2."""
    return {what: stored[what] if stored.get(what) == without_sketches(text) else text for what, text in now.items()}


def without_sketches(text: str) -> str:
    parts = [each for each in text.split("; ") if each.partition("(")[0] not in SKETCHES]
    return "; ".join(parts) or NOTHING
