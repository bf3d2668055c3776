"""Parses SQL without Spark: its syntax errors, the tables that it reads, whether it aggregates.

Uses sqlglot's Spark dialect. sqlglot is imported with the first query, because the import takes 0.2 s.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, ClassVar

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.nearest import nearest

if TYPE_CHECKING:
    from sqlglot import exp

# sqlglot parses `window` after GROUP BY as a WINDOW clause. A stand-in of equal length keeps positions valid.
WINDOW_NAME = re.compile(
    r"\bwindow(?=\s*(?:[(,);]|$|(?:having|union|order|limit|with|intersect|except)\b))", re.IGNORECASE
)
WINDOW_STAND_IN = "windo_"
FIRST_WORD = re.compile(r"\s*([A-Za-z_]\w*)")
QUERY_WORDS = frozenset({"select", "with", "from", "values", "table"})
SPECIAL_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "POSITION", "OVERLAY")
NO_PARENTHESES = ("CASE", "IF")
QUOTED = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?P<open>'|"|`|/\*)""", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class SqlError(Exception):
    """A syntax error, and its line and column in the text (from 1)."""

    message: str
    line: int
    column: int
    hint: str = ""


@dataclass(frozen=True, slots=True)
class TableRead:
    """A table that a query names, and the position of the name."""

    name: str
    line: int
    column: int


@functools.lru_cache(maxsize=1024)
def parse_query(text: str) -> exp.Expr:
    """Parses a text that is one query, or raises `SqlError`. The result is cached: do not modify it."""
    from sqlglot import exp  # noqa: PLC0415 - takes 0.2 s, which only definitions with SQL need

    try:
        statements = _parsed(text)
    except SqlError as error:
        raise _wrong_start(text) or error from error
    if len(statements) > 1:
        raise SqlError(f"expected one query, found {len(statements)} statements", *_start_of(text))
    query = statements[0]
    if not isinstance(query, exp.Query):
        raise _wrong_start(text) or SqlError("expected a query", *_start_of(text))
    return query


@functools.lru_cache(maxsize=1024)
def parse_expression(text: str) -> exp.Expr:
    """Parses a text that is one expression, or raises `SqlError`."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    prefix = "SELECT "
    try:
        query = _parsed(prefix + text)[0]
    except SqlError as error:
        column = error.column - len(prefix) if error.line == 1 else error.column
        raise SqlError(error.message, error.line, max(column, 1)) from error
    plain = isinstance(query, exp.Select) and not any(
        value for key, value in query.args.items() if key not in {"expressions", "kind", "hint", "distinct"}
    )
    if not plain or len(query.expressions) != 1:
        raise SqlError("expected one expression", *_start_of(text))
    found: exp.Expr = query.expressions[0]
    return found


@functools.cache
def reading_dialect() -> Any:
    """sqlglot's Spark dialect, changed to read a doubled quote as an escaped one, as Spark 4 does."""
    from sqlglot.dialects import Spark  # noqa: PLC0415 - takes long to import

    class Spark4(Spark):  # type: ignore[misc]  # the dialects of sqlglot are built by an untyped metaclass
        class Tokenizer(Spark.Tokenizer):  # type: ignore[misc]
            STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    return Spark4


@functools.cache
def writing_dialect() -> Any:
    """The dialect with every function call as it is written; sqlglot would translate names and refuse some calls."""
    reading: Any = reading_dialect()
    parsers = reading.Parser.FUNCTION_PARSERS
    plain = reading.Parser.NO_PAREN_FUNCTION_PARSERS

    class Written(reading):  # type: ignore[misc]
        class Parser(reading.Parser):  # type: ignore[misc]
            FUNCTIONS: ClassVar[dict[str, Any]] = {}
            FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
                name: parse for name, parse in parsers.items() if name in SPECIAL_SYNTAX
            }
            NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
                name: parse for name, parse in plain.items() if name in NO_PARENTHESES
            }

    return Written


def _parsed(text: str) -> list[exp.Expr]:
    import sqlglot  # noqa: PLC0415 - takes long to import
    from sqlglot.errors import SqlglotError, TokenError  # noqa: PLC0415 - takes long to import

    readable = WINDOW_NAME.sub(WINDOW_STAND_IN, text)
    found: list[Any] = []
    try:
        found = sqlglot.parse(readable, read=reading_dialect())
    except TokenError as error:
        raise _token_error(text) from error
    except RecursionError as error:
        raise SqlError("nested too deeply", 1, 1) from error
    except Exception as error:  # sqlglot fails in many ways for arguments that it does not expect
        try:
            found = sqlglot.parse(readable, read=writing_dialect())
        except SqlglotError:
            raise _parse_error(text, error) from error
    statements = [with_window_columns(each) for each in found if each is not None]
    if not statements:
        raise SqlError("the SQL is empty", 1, 1)
    return statements


def with_window_columns(statement: exp.Expr) -> exp.Expr:
    """The statement, in which columns are called `window` again; calls of the function keep the stand-in."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    for each in statement.find_all(exp.Identifier):
        if each.name == WINDOW_STAND_IN:
            each.set("this", "window")
    return statement


def _parse_error(text: str, error: Exception) -> SqlError:
    details = getattr(error, "errors", None) or [{}]
    first = details[0]
    line, end_column = first.get("line") or 1, first.get("col") or 1
    marked = (first.get("highlight") or "").replace(WINDOW_STAND_IN, "window")
    message = _readable_message((first.get("description") or str(error)).strip().rstrip("."), marked)
    if "\n" in marked:
        return SqlError(message, line, end_column)
    lines = text.split("\n")
    column = max(end_column - len(marked) + 1, 1)
    if line <= len(lines):
        column = min(column, len(lines[line - 1]) + 1)
    return SqlError(message, line, column)


def _readable_message(message: str, marked: str) -> str:
    """sqlglot's message without the names of its classes."""
    if message.startswith("Required keyword"):
        return f"the SQL is incomplete after '{marked}'"
    if "Unexpected token" in message:
        return f"unexpected '{marked}'"
    if message.startswith("Expected table name"):
        return f"expected a table name after '{marked}'"
    message = re.sub(r"\s*(but got )?<[^>]*>", "", message)
    return f"{message} near '{marked}'" if marked else message


def _token_error(text: str) -> SqlError:
    """The error for an unterminated quote or comment, at its start."""
    position = 0
    while match := QUOTED.search(text, position):
        if match["open"]:
            before = text[: match.start()]
            line, column = before.count("\n") + 1, match.start() - (before.rfind("\n") + 1) + 1
            return SqlError(f"unterminated {match['open']}", line, column)
        position = match.end()
    return SqlError("this is not SQL", *_start_of(text))


def _wrong_start(text: str) -> SqlError | None:
    """The error for a text whose first word does not begin a query."""
    word = FIRST_WORD.match(text)
    if word is None or word[1].lower() in QUERY_WORDS:
        return None
    close = nearest(word[1], ["select", "with"])
    hint = f"did you mean '{close}'?" if close else "write a query: SELECT … FROM …"
    return SqlError("SQL must start with SELECT", *_start_of(text), hint)


def _start_of(text: str) -> tuple[int, int]:
    before = text[: len(text) - len(text.lstrip())]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def tables_read(query: exp.Expr) -> list[TableRead]:
    """The tables that a query names, in the order of the text, without its own CTEs."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    named = {each.alias.lower() for each in query.find_all(exp.CTE)}
    found = []
    for table in query.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or table.find_ancestor(exp.Hint) is not None:
            continue  # a table function, or an alias in a hint
        name = ".".join(part.name for part in table.parts)
        if name.lower() not in named:
            found.append(TableRead(name, *place_in(table.parts[0])))
    return sorted(set(found), key=lambda each: (each.line, each.column))


def place_in(identifier: exp.Expr) -> tuple[int, int]:
    """The line and column of an identifier's start; sqlglot records its end."""
    line, end = identifier.meta.get("line"), identifier.meta.get("col")
    if line is None or end is None:
        return 1, 1
    width = identifier.meta["end"] - identifier.meta["start"] + 1 if "end" in identifier.meta else 1
    return line, max(end - width + 1, 1)


def is_aggregation(query: exp.Expr) -> bool:
    """Whether the query aggregates: GROUP BY, DISTINCT, or an aggregate function without OVER."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    return any(
        select.args.get("group") or select.args.get("distinct") or aggregate_functions(select)
        for select in query.find_all(exp.Select)
    )


def aggregate_functions(expression: exp.Expr) -> list[exp.Expr]:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    calls = [
        each for each in expression.find_all(exp.AggFunc, exp.Any) if not isinstance(each, exp.Any) or is_any(each)
    ]
    return [each for each in calls if each.find_ancestor(exp.Window) is None]


def is_any(node: exp.Expr) -> bool:
    """Whether this is a call of the aggregate function `any`; sqlglot has one class for it and for LIKE ANY."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    return isinstance(node, exp.Any) and not isinstance(node.parent, exp.Like | exp.ILike)
