"""Which rows of a query keep their origin: the record that they derive from, whose offset is the order of arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.sql_text import is_aggregation

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlglot import exp

# Clauses of a query whose rows derive from single records.
ROW_CLAUSES = frozenset(
    {"expressions", "from_", "from", "where", "laterals", "joins", "order", "sort", "limit", "kind"}
)
UNION_CLAUSES = frozenset({"this", "expression", "distinct", "side", "kind"})


def origin_tables(query: exp.Expr, with_origins: Collection[str]) -> list[str] | None:
    """The table of a plain SELECT whose origin the rows keep, or those of each SELECT of a UNION ALL, in their order.

    None if a row may derive from several records, or from none."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already, so imported already

    if isinstance(query, exp.Union):
        if query.args.get("distinct") or any(value for key, value in query.args.items() if key not in UNION_CLAUSES):
            return None
        left, right = (origin_tables(each, with_origins) for each in (query.this, query.expression))
        return None if left is None or right is None else left + right
    if not isinstance(query, exp.Select) or any(value for key, value in query.args.items() if key not in ROW_CLAUSES):
        return None
    if is_aggregation(query) or query.find(exp.Window, exp.Hint, exp.Pivot) is not None:
        return None
    if not all(map(is_condition, query.find_all(exp.Subquery))):
        return None
    folded = {name.lower(): name for name in with_origins}
    read = [folded[table.name.lower()] for table in query.find_all(exp.Table) if table.name.lower() in folded]
    return read if len(read) == 1 else None


def is_condition(subquery: exp.Expr) -> bool:
    """Whether this is the query of an IN, with named columns."""
    from sqlglot import exp  # noqa: PLC0415

    return isinstance(subquery.parent, exp.In) and subquery.find(exp.Star) is None
