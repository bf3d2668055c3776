"""What in a query may raise an error for the values of a row, as far as the types of its columns do not exclude it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.column_types import Decimal, Map, Primitive
from odradek.pipelines.sql.functions import MAY_FAIL, OPERATORS
from odradek.pipelines.sql.query import Query
from odradek.pipelines.sql.results import FLOATS, INTEGERS, NUMBERS, STRING, certain_type, type_of_name
from odradek.pipelines.sql.text import exp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.pipelines.definition.column_types import ColumnType
    from odradek.pipelines.sql.columns import Columns

DIGITS = dict(zip(INTEGERS, (3, 5, 10, 19), strict=True))  # of the greatest number
TIMES = frozenset(Primitive(name) for name in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"))
DIVISIONS = frozenset(("/", "%", "div", "mod", "pmod"))
READS_TIMES = frozenset(("to_date", "to_timestamp", "to_unix_timestamp", "unix_timestamp"))


def failing(query: Query, tree: exp.Expr | None = None) -> Iterator[tuple[exp.Expr, str]]:
    """The parts of a query, or of one of its expressions, that may raise an error for the values of a row, with their
    names in MAY_FAIL. A constant fails before the first row, or never."""
    for node in (query.tree if tree is None else tree).walk():
        name = node.name.lower() if isinstance(node, exp.Anonymous) else OPERATORS.get(type(node).__name__, "")
        if name in MAY_FAIL and not _never_fails(query, node, name):
            yield node, name


def may_fail(query: Query, tree: exp.Expr | None = None) -> bool:
    """Whether Spark may raise an error for the values of a row."""
    return any(True for _ in failing(query, tree))


def expression_may_fail(expression: str, columns: Columns | None) -> bool:
    """Whether an expression over a table with these columns may raise an error for the values of a row."""
    return may_fail(Query.of_expression(expression, "input", lambda _table: columns))


def _never_fails(query: Query, node: exp.Expr, name: str) -> bool:
    values = node.expressions if isinstance(node, exp.Anonymous) else [node.this]
    value = values[0].unnest() if values else node
    target = certain_type(query, node) if isinstance(node, exp.Cast) else type_of_name(name)
    if name == "cast" or target is not None:
        source = certain_type(query, value)
        return (
            isinstance(value, (exp.Literal, exp.Null))
            or target == STRING
            or (source is not None and _widens(source, target))
        )
    if name in DIVISIONS:
        divisor = values[1] if isinstance(node, exp.Anonymous) and len(values) > 1 else node.args.get("expression")
        return is_number_but_0(divisor) and certain_type(query, value) in NUMBERS
    if name in {"+", "-", "*"}:
        is_constant = isinstance(node, exp.Neg) and isinstance(value, exp.Literal)
        return is_constant or certain_type(query, node) in FLOATS
    if name in {"[]", "element_at"}:
        return isinstance(certain_type(query, value), Map)
    return name in READS_TIMES and len(values) == 1 and certain_type(query, value) in TIMES


def is_number_but_0(tree: exp.Expr | None) -> bool:
    number = tree.this if isinstance(tree, exp.Cast) else tree  # 2L is a cast
    return isinstance(number, exp.Literal) and not number.is_string and bool(number.name.strip("0."))


def _widens(source: ColumnType, target: ColumnType | None) -> bool:
    """Whether each value of a type has one in another."""
    name = source.name if isinstance(source, Primitive) else ""
    if source == target:
        return True
    if isinstance(target, Decimal):
        return name in DIGITS and target.precision - target.scale >= DIGITS[name]
    if target in FLOATS:
        return source in NUMBERS or isinstance(source, Decimal)
    wanted = target.name if isinstance(target, Primitive) else ""
    if name in INTEGERS:
        return wanted in INTEGERS[INTEGERS.index(name) :]
    return source in TIMES and (wanted == "DATE" or (wanted == "BIGINT" and name != "DATE"))
