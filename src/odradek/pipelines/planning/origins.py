"""Which rows of a query keep their origin: the record that they derive from, whose offset is the order of arrival.

The origin is added to the text of a query as a column, so that both the query and its text decide whether rows have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.sql_text import is_aggregation, parse_query
from odradek.pipelines.definition.sql_written import is_star as is_star_column
from odradek.pipelines.planning.sql_tokens import Kind, counts_rows, is_plain_star, is_star, tokenize

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlglot import exp

    from odradek.pipelines.planning.sql_tokens import Token

# Clauses of a query whose rows derive from single records.
ROW_CLAUSES = frozenset(
    {"expressions", "from_", "from", "where", "laterals", "joins", "order", "sort", "limit", "kind"}
)
UNION_CLAUSES = frozenset({"this", "expression", "distinct", "side", "kind"})


def kept_origins(text: str, with_origins: Collection[str]) -> list[str] | None:
    """The tables whose origin the rows of a query keep: that of a SELECT, or those of each SELECT of a UNION ALL.

    None if a row may derive from several records or from none, or if the user's expressions would see the origin."""
    tables = origin_tables(parse_query(text), with_origins)
    parts = union_parts(text)
    if tables is None or len(parts) != len(tables):
        return None
    return tables if all(map(can_add_origin, parts, tables)) else None


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
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    return isinstance(subquery.parent, exp.In) and subquery.find(exp.Star) is None


def can_add_origin(text: str, table: str) -> bool:
    """Whether the origin of this table can be a column of a SELECT that the user's expressions do not see."""
    tokens = tokenize(text)
    if end_of_columns(tokens) is None or any(each.kind is Kind.UNKNOWN for each in tokens):
        return False
    query = parse_query(text)
    stars = stars_of(query, table)
    if stars > 1 or (stars and query.args.get("order")):
        return False  # an ordinal of ORDER BY would count the origin
    nested = nested_stars(tokens)
    return not nested or (reads_one_table(query) and all(is_plain_star(tokens, index) for index in nested))


def nested_stars(tokens: Sequence[Token]) -> list[int]:
    """The stars in expressions, which stand for columns other than the origin."""
    return [
        index
        for index in range(len(tokens))
        if is_star(tokens, index) and not counts_rows(tokens, index) and depth_at(tokens, index) > 0
    ]


def union_parts(text: str) -> list[str]:
    """The queries of a UNION ALL, or the query itself."""
    tokens = tokenize(text)
    parts, start = [], 0
    for index, token in enumerate(tokens):
        is_all = token.is_word("all") and index > 0 and tokens[index - 1].is_word("union")
        if is_all and depth_at(tokens, index) == 0:
            parts.append(text[start : tokens[index - 1].start] + "\n")
            start = token.end
    return [*parts, text[start:]]


def end_of_columns(tokens: Sequence[Token]) -> int | None:
    """The index of the FROM behind the columns of a SELECT; None if the text starts in another way."""
    if not tokens or not tokens[0].is_word("select"):
        return None
    for index, token in enumerate(tokens):
        is_predicate = tokens[index - 1].is_word("distinct")  # IS DISTINCT FROM
        if token.is_word("from") and not is_predicate and depth_at(tokens, index) == 0:
            return index
    return None


def depth_at(tokens: Sequence[Token], index: int) -> int:
    """The number of parentheses around a token."""
    before = tokens[:index]
    return sum(each.is_symbol("(") for each in before) - sum(each.is_symbol(")") for each in before)


def reads_one_table(query: exp.Expr) -> bool:
    """Whether all columns in scope are those of one table."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    is_single = len(list(query.find_all(exp.Table))) == 1 and len(list(query.find_all(exp.Select))) == 1
    return is_single and not query.args.get("laterals")


def stars_of(query: exp.Expr, table: str) -> int:
    """The number of stars among the columns of a SELECT that stand for all columns of a table."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    tables = [each for each in query.find_all(exp.Table) if each.name.lower() == table.lower()]
    names = {(each.alias or each.name).lower() for each in tables}
    stars = [each for each in query.expressions if is_star_column(each)]
    return sum(isinstance(each, exp.Star) or each.table.lower() in names for each in stars)
