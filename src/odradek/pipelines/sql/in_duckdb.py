"""Translates queries of Spark's SQL to DuckDB's, as far as both give the same rows, types and column names.

What is not listed here is refused, so that the same text never means two things. Differences between the two that
depend on a value or a type (division by zero, casts of text) are macros, which raise an error instead of a result.
"""

from __future__ import annotations

import re
from typing import Any

from odradek.pipelines.sql.text import exp, parse_any

CLAUSES = frozenset((
    "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct", "with_",
))  # fmt: skip
NODES = frozenset((
    "Alias", "And", "Between", "Boolean", "Case", "Column", "CTE", "Distinct", "Except", "From", "Group", "Having",
    "Identifier", "If", "In", "Is", "Join", "Limit", "Literal", "Not", "Null", "Offset", "Or", "Order", "Ordered",
    "Paren", "Select", "Star", "Subquery", "Table", "TableAlias", "Where", "Window", "With",
    "EQ", "NEQ", "NullSafeEQ", "GT", "GTE", "LT", "LTE", "Add", "Sub", "Mul", "Div", "Mod", "Neg",
    "Anonymous", "Bracket", "Cast", "DataType", "Like",
))  # fmt: skip
FUNCTIONS = frozenset((
    "count", "sum", "avg", "min", "max", "abs", "coalesce", "length", "lower", "upper", "row_number", "rank",
    "dense_rank",
))  # fmt: skip
ASCII = "regexp_full_match(a, '[[:ascii:]]*') IS NOT FALSE"
GUARDED = {"lower": ASCII, "upper": ASCII, "length": "contains(a, chr(65533)) IS NOT TRUE"}  # a stand-in of lost bytes
OPERATORS = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "GT": ">", "GTE": ">=", "LT": "<", "LTE": "<="}
JOINS = ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI")
MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?\Z")
NUMBERS = {
    "BIGINT": "[+-]?[0-9]{1,18}",
    "INT": "[+-]?[0-9]{1,10}",
    "DOUBLE": "[+-]?[0-9]+([.][0-9]+)?(e[+-]?[0-9]{1,2})?",
}
MACROS = tuple(
    f"CREATE TEMP MACRO {call} AS CASE WHEN {condition} THEN {result} ELSE error('{call.partition('(')[0]}') END"
    for call, condition, result in (
        ("division(a, b)", "(b <> 0) IS NOT FALSE AND concat(typeof(a), typeof(b)) NOT LIKE '%DECIMAL%'", "a / b"),
        ("remainder(a, b)", "(b <> 0) IS NOT FALSE", "a % b"),
        ("cast_string(a)", "typeof(a) IN ('VARCHAR', 'BIGINT', 'INTEGER', 'BOOLEAN', 'DATE')", "CAST(a AS VARCHAR)"),
        *((f"sure_{name}(a)", condition, f"{name}(a)") for name, condition in GUARDED.items()),
        *(
            (f"cast_{kind}(a)", f"regexp_full_match(CAST(a AS VARCHAR), '{text}') IS NOT FALSE", f"CAST(a AS {kind})")
            for kind, text in NUMBERS.items()
        ),
    )
)


class NotInDuckdb(Exception):
    """What in a query DuckDB would answer in another way than Spark."""


def duckdb_text(text: str, types: frozenset[str]) -> str:
    """The query for DuckDB, which has `MACROS`; `types` are those of all columns of its tables."""
    query = parse_any(text).copy()
    for node in query.walk():
        _check(node)
    calls = {each.name.lower() for each in query.find_all(exp.Anonymous)}
    if "DATE" in types and query.find(exp.Sub):
        raise NotInDuckdb("a difference beside columns of type DATE")
    if "avg" in calls and any(_is_decimal(each) for each in query.find_all(exp.Literal)):
        raise NotInDuckdb("avg beside a decimal number")
    for select in query.find_all(exp.Select):
        select.set("expressions", [_named(each) for each in select.expressions])
    return str(query.transform(_translated).sql(dialect="duckdb", identify=True))


def _check(node: Any) -> None:
    """Refuses what is not known to mean the same in DuckDB."""
    kind = type(node).__name__
    if kind not in NODES:
        raise NotInDuckdb(kind.upper())
    if kind == "Select":
        other = [key for key, value in node.args.items() if value and key not in CLAUSES]
        if other or not node.args.get("from_"):
            raise NotInDuckdb(other[0].upper() if other else "SELECT without FROM")
        if node.parent is not None and node.args.get("joins") and any(each.is_star for each in node.expressions):
            raise NotInDuckdb("* of a join in a subquery")
    elif kind == "Anonymous" and node.name.lower() not in FUNCTIONS:
        raise NotInDuckdb(f"{node.name}()")
    elif kind == "Join" and (node.args.get("using") or node.args.get("method") or node.kind not in JOINS):
        raise NotInDuckdb("a join with USING, NATURAL or LATERAL")
    elif kind in {"Group", "Star", "Table", "With"} and _clauses_of(node):
        raise NotInDuckdb(f"{kind.upper()} with {_clauses_of(node)[0].upper()}")
    elif (kind == "Bracket" and not _is_key(node)) or (kind == "Like" and "\\" in node.expression.name):
        raise NotInDuckdb("an index" if kind == "Bracket" else "LIKE with a backslash")
    elif kind == "Cast" and not (_is_typed_literal(node) or _type(node) in {*NUMBERS, "STRING"}):
        raise NotInDuckdb(f"a cast to {_type(node)}")
    elif kind == "NullSafeEQ" and (_is_number(node.this) or _is_number(node.expression)):
        raise NotInDuckdb("<=> with a number")


def _clauses_of(node: Any) -> list[str]:
    known = {"this", "expressions", "alias", "db", "catalog"}
    return [key for key, value in node.args.items() if value and key not in known]


def _type(cast: Any) -> str:
    return str(cast.to.sql(dialect="spark")).upper()


def _is_key(node: Any) -> bool:
    return len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Literal) and node.expressions[0].is_string


def _is_number(node: Any) -> bool:
    node = node.this if isinstance(node, exp.Neg) else node
    return isinstance(node, exp.Literal) and not node.is_string


def _is_decimal(node: Any) -> bool:
    return _is_number(node) and "." in node.name and "e" not in node.name.lower()


def _is_typed_literal(node: Any) -> bool:
    """Whether it is `DATE'2026-01-31'`, `TIMESTAMP'…'` or a number with a letter, such as `5L`."""
    kind = _type(node)
    if not isinstance(node.this, exp.Literal):
        return False
    return kind in {"BIGINT", "DOUBLE"} if _is_number(node.this) else (
        kind in {"DATE", "TIMESTAMP"} and MOMENT.match(node.this.name) is not None
    )  # fmt: skip


def _named(item: Any) -> Any:
    """An item of a SELECT under the name that Spark gives it."""
    if isinstance(item, exp.Alias) or item.is_star:
        return item
    return exp.alias_(item, item.name if isinstance(item, exp.Column) else _name(item), quoted=True)


def _name(node: Any) -> str:
    kind = type(node).__name__
    if kind == "Literal" or (kind == "Column" and not node.table):
        return str(node.name)
    if kind == "Star":
        return "1"  # count(*) is called count(1)
    if kind == "Paren":
        return _name(node.this)
    if kind == "Anonymous":
        return f"{node.name.lower()}({', '.join(map(_name, node.expressions))})"
    if kind == "Distinct":
        return f"DISTINCT {', '.join(map(_name, node.expressions))}"
    if kind == "Bracket":
        return f"{_name(node.this)}[{_name(node.expressions[0])}]"
    if kind in OPERATORS:
        return f"({_name(node.this)} {OPERATORS[kind]} {_name(node.expression)})"
    raise NotInDuckdb("a column without a name; give it one with AS")


def _translated(node: Any) -> Any:
    """A node for DuckDB. It compares text with a number by rounding the text, unless both are in a BETWEEN."""
    kind = type(node).__name__
    if kind in {"Div", "Mod"}:
        name = "division" if kind == "Div" else "remainder"
        return exp.Anonymous(this=name, expressions=[node.this, node.expression])
    if kind == "Cast" and not _is_typed_literal(node):
        return exp.Anonymous(this=f"cast_{_type(node)}", expressions=[node.this])
    if kind == "Anonymous" and node.name.lower() in GUARDED:
        return exp.Anonymous(this=f"sure_{node.name.lower()}", expressions=node.expressions)
    if kind in {"EQ", "NEQ"} and (_is_number(node.this) or _is_number(node.expression)):
        equal = _equals(node.this, node.expression)
        return exp.paren(equal if kind == "EQ" else exp.not_(equal))
    if kind == "In" and any(map(_is_number, node.expressions)):
        return exp.paren(exp.or_(*(_equals(node.this, each) for each in node.expressions), copy=True))
    return node


def _equals(value: Any, number: Any) -> Any:
    value, number = (number, value) if _is_number(value) else (value, number)
    return exp.Between(this=value.copy(), low=number.copy(), high=number.copy())
