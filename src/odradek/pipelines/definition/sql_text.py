"""What SQL says, without Spark: whether it parses, which tables it reads, what kind of query it is.

sqlglot reads Spark's dialect; it is imported when the first query is looked at, because that takes 0.2 s.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from sqlglot import exp

DIALECT = "spark"
# After GROUP BY sqlglot takes Spark's function for the WINDOW clause; a name of the same length keeps all places.
WINDOW_FUNCTION = re.compile(r"\bwindow(?=\s*\()", re.IGNORECASE)
WINDOW_STAND_IN = "windo_"
QUOTED = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?P<open>'|"|`|/\*)""", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class SqlError(Exception):
    """What is wrong, at a line and a column of the text (from 1)."""

    message: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class TableRead:
    """A table that a query names, and where."""

    name: str
    line: int
    column: int


@functools.lru_cache(maxsize=1024)
def parse_query(text: str) -> exp.Expr:
    """The one query of a text, or `SqlError`. Not to be changed: it is kept."""
    from sqlglot import exp  # noqa: PLC0415 - 0.2 s that only definitions with SQL pay

    statements = _parsed(text)
    if len(statements) > 1:
        raise SqlError(f"{len(statements)} statements where one query should stand", *_start_of(text))
    query = statements[0]
    if not isinstance(query, exp.Query):
        raise SqlError(f"{query.key.upper()} where a query should stand", *_start_of(text))
    return query


@functools.lru_cache(maxsize=1024)
def parse_expression(text: str) -> exp.Expr:
    """The one expression of a text, or `SqlError`."""
    from sqlglot import exp  # noqa: PLC0415

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
        raise SqlError("one expression should stand here", *_start_of(text))
    found: exp.Expr = query.expressions[0]
    return found


@functools.cache
def reading_dialect() -> Any:
    """Spark's, in which a doubled quote stands for one, as it does in Spark 4; sqlglot reads two texts."""
    from sqlglot.dialects import Spark  # noqa: PLC0415

    class Spark4(Spark):  # type: ignore[misc]
        class Tokenizer(Spark.Tokenizer):  # type: ignore[misc]
            STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    return Spark4


def _parsed(text: str) -> list[exp.Expr]:
    import sqlglot  # noqa: PLC0415
    from sqlglot.errors import ParseError, TokenError  # noqa: PLC0415

    try:
        readable = WINDOW_FUNCTION.sub(WINDOW_STAND_IN, text)
        statements = [each for each in sqlglot.parse(readable, read=reading_dialect()) if each is not None]
    except ParseError as error:
        raise _parse_error(text, error) from error
    except TokenError as error:
        raise _token_error(text) from error
    except RecursionError as error:
        raise SqlError("nested too deeply", 1, 1) from error
    if not statements:
        raise SqlError("there is no query", 1, 1)
    return statements


def _parse_error(text: str, error: Exception) -> SqlError:
    details = getattr(error, "errors", None) or [{}]
    first = details[0]
    line, end_column = first.get("line") or 1, first.get("col") or 1
    marked = (first.get("highlight") or "").replace(WINDOW_STAND_IN, "window")
    message = _plain_words((first.get("description") or str(error)).strip().rstrip("."), marked)
    if "\n" in marked:
        return SqlError(message, line, end_column)
    lines = text.split("\n")
    column = max(end_column - len(marked) + 1, 1)
    if line <= len(lines):
        column = min(column, len(lines[line - 1]) + 1)
    return SqlError(message, line, column)


def _plain_words(message: str, marked: str) -> str:
    """sqlglot's words without the names of its classes."""
    if message.startswith("Required keyword"):
        return f"something is missing after '{marked}'"
    if "Unexpected token" in message:
        return f"'{marked}' cannot stand here"
    if message.startswith("Expected table name"):
        return f"the name of a table is missing after '{marked}'"
    message = re.sub(r"\s*(but got )?<[^>]*>", "", message)
    return f"{message} near '{marked}'" if marked else message


def _token_error(text: str) -> SqlError:
    """A quote or a comment that does not end, told where it begins."""
    position = 0
    while match := QUOTED.search(text, position):
        if match["open"]:
            before = text[: match.start()]
            line, column = before.count("\n") + 1, match.start() - (before.rfind("\n") + 1) + 1
            return SqlError(f"{match['open']} begins something that does not end", line, column)
        position = match.end()
    return SqlError("this cannot be read as SQL", *_start_of(text))


def _start_of(text: str) -> tuple[int, int]:
    before = text[: len(text) - len(text.lstrip())]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def tables_read(query: exp.Expr) -> list[TableRead]:
    """The tables that a query names in the order of the text, its own `WITH` names aside."""
    from sqlglot import exp  # noqa: PLC0415

    named = {each.alias.lower() for each in query.find_all(exp.CTE)}
    found = []
    for table in query.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            continue  # a function in the place of a table
        name = ".".join(part.name for part in table.parts)
        if name.lower() not in named:
            found.append(TableRead(name, *place_in(table.parts[0])))
    return sorted(set(found), key=lambda each: (each.line, each.column))


def place_in(identifier: exp.Expr) -> tuple[int, int]:
    """Line and column of a word; sqlglot notes where it ends."""
    line, end = identifier.meta.get("line"), identifier.meta.get("col")
    if line is None or end is None:
        return 1, 1
    width = identifier.meta["end"] - identifier.meta["start"] + 1 if "end" in identifier.meta else 1
    return line, max(end - width + 1, 1)


def is_aggregation(query: exp.Expr) -> bool:
    """Whether rows depend on more than one row: GROUP BY, DISTINCT, or an aggregate function without OVER."""
    from sqlglot import exp  # noqa: PLC0415

    return any(
        select.args.get("group") or select.args.get("distinct") or aggregate_functions(select)
        for select in query.find_all(exp.Select)
    )


def aggregate_functions(expression: exp.Expr) -> list[exp.AggFunc]:
    from sqlglot import exp  # noqa: PLC0415

    return [each for each in expression.find_all(exp.AggFunc) if each.find_ancestor(exp.Window) is None]
