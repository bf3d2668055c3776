"""Parses SQL with sqlglot: tokens and trees with positions, and readable syntax errors.

There is one dialect: Spark's, in which each call of a function keeps the name that the user wrote.
"""

from __future__ import annotations

import functools
import importlib
import re
from typing import TYPE_CHECKING, Any, ClassVar, cast

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlglot import exp as exp  # noqa: PLC0414 - the other modules import it from here

Span = tuple[int, int]  # start and end (exclusive) in the text of a step

OPENING = frozenset(("L_PAREN", "L_BRACKET", "L_BRACE"))
CLOSING = frozenset(("R_PAREN", "R_BRACKET", "R_BRACE"))
# Spark reads these names as columns where a table has such a column, and as calls elsewhere.
LITERAL_FUNCTIONS = ("current_date", "current_timestamp", "current_time", "current_user", "session_user", "user")
WINDOWS = ("window", "session_window")
SPECIAL_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "POSITION", "OVERLAY", "SUBSTRING", "SUBSTR")
# The methods of sqlglot's parser that read items, conditions and groups, terms of AND, arguments, and calls.
WITH_SPANS = ("_parse_disjunction", "_parse_equality", "_parse_lambda", "_parse_function_call")
QUOTED = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?P<open>'|"|`|/\*)""", re.DOTALL
)


class Sqlglot:
    """A module of sqlglot that is imported when it is first used, because the import takes 0.2 s."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, found)
        return found


if not TYPE_CHECKING:
    exp = Sqlglot("sqlglot.expressions")


class SqlError(Exception):
    """SQL that cannot be read: what is wrong, the position in the text, and what to write."""

    def __init__(self, message: str, offset: int, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a literal or a symbol. Comments are no tokens. `kind` is the name of sqlglot's TokenType."""

    kind: str
    text: str
    start: int
    end: int


@functools.cache
def dialect() -> Any:
    """sqlglot's Spark dialect with calls as they are written: its own would rename functions, and refuse some calls."""
    from sqlglot.dialects import Spark  # noqa: PLC0415 - takes 0.2 s, which only definitions with SQL need

    parser: Any = Spark.Parser
    special = {name: parse for name, parse in parser.FUNCTION_PARSERS.items() if name in SPECIAL_SYNTAX}

    class Written(Spark):  # type: ignore[misc]  # the dialects of sqlglot are built by an untyped metaclass
        class Tokenizer(Spark.Tokenizer):  # type: ignore[misc]
            STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']  # in Spark 4 a doubled quote is an escaped one

        class Parser(parser):  # type: ignore[misc]
            STRICT_CAST = True  # parse `cast` as another expression than `try_cast`
            FUNCTIONS: ClassVar[dict[str, Any]] = {}
            FUNCTION_PARSERS: ClassVar[dict[str, Any]] = special
            NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": parser.NO_PAREN_FUNCTION_PARSERS["CASE"]}

    for name in WITH_SPANS:
        setattr(Written.Parser, name, _with_span(getattr(parser, name)))
    return Written()


def _with_span(parse: Any) -> Any:
    """A method of sqlglot's parser that notes in its result from which part of the text it was read."""

    def parse_with_span(self: Any, *arguments: Any, **named: Any) -> Any:
        first = self._curr
        tree = parse(self, *arguments, **named)
        if tree is not None:
            tree.meta["span"] = (first.start, self._prev.end + 1)
        return tree

    return parse_with_span


@functools.lru_cache(maxsize=1024)
def _tokenized(text: str) -> tuple[Any, ...]:
    """sqlglot's tokens, in which names that Spark does not reserve are plain words."""
    from sqlglot.errors import TokenError  # noqa: PLC0415 - takes 0.2 s

    try:
        tokens: list[Any] = dialect().tokenize(text)
    except TokenError as error:
        raise _unterminated(text) from error
    for token, behind in zip(tokens, [*tokens[2:], None, None], strict=False):
        kinds: Any = type(token.token_type)
        is_literal = text[token.start : token.end + 1].lower() in LITERAL_FUNCTIONS
        is_clause = behind is not None and behind.token_type is kinds.ALIAS  # WINDOW w AS (…)
        if is_literal or (token.token_type is kinds.WINDOW and not is_clause):
            token.token_type = kinds.VAR
    return tuple(tokens)


@functools.lru_cache(maxsize=1024)
def tokens_of(text: str) -> tuple[Token, ...]:
    """The tokens of a text, or `SqlError` for an unterminated quote or comment."""
    return tuple(Token(each.token_type.name, each.text, each.start, each.end + 1) for each in _tokenized(text))


@functools.lru_cache(maxsize=1024)
def parse_any(text: str) -> exp.Query:
    """Parses a text that is one query, or raises `SqlError`. The result is cached: do not modify it."""
    from sqlglot.errors import ParseError  # noqa: PLC0415 - takes 0.2 s

    tokens = _tokenized(text)
    _check_start(text)
    statements = sum(bool(each) for each in cut(tokens_of(text), _semicolons(text)))
    if statements != 1:  # sqlglot would log that it does not know a second one
        raise SqlError(f"expected one query, found {statements} statements", _first(text))
    try:
        found = [each for each in dialect().parser().parse(list(tokens), text) if each is not None]
    except ParseError as error:
        raise _syntax_error(text, error.errors[0] if error.errors else {"description": str(error)}) from error
    except RecursionError as error:
        raise SqlError("nested too deeply", 0) from error
    if not isinstance(found[0], (exp.Query, exp.Values)):
        raise SqlError("expected a query", _first(text), "write SELECT … FROM …")
    return cast("exp.Query", found[0])


def parse_query(text: str) -> exp.Select:
    """Parses a text that is one SELECT, or raises `SqlError`. The result is cached: do not modify it."""
    query = parse_any(text)
    if not isinstance(query, exp.Select):
        raise SqlError("expected one SELECT", _first(text), "write SELECT … FROM …")
    return query


def tables_of(query: exp.Query) -> tuple[str, ...]:
    """The tables that a query names, in the order of the text, without those of its own WITH."""
    return tuple(dict.fromkeys(table_name(each) for each in named_tables(query)))


def named_tables(query: exp.Query) -> list[exp.Table]:
    found = [each for each in query.find_all(exp.Table) if isinstance(each.this, exp.Identifier)]
    outside = [each for each in found if each.find_ancestor(exp.Hint) is None and not _is_of_with(each)]
    return sorted(outside, key=lambda each: span_of(each.this) or (0, 0))


def _is_of_with(table: exp.Table) -> bool:
    """Whether a table is a query of a WITH around it. A query of WITH sees those before it, and itself if recursive."""
    child: exp.Expr = table
    node = table.parent
    while node is not None:
        clause = node if isinstance(node, exp.With) else node.args.get("with_")
        if clause is not None and child is not clause:
            queries = clause.expressions
            seen = queries[: queries.index(child)] if node is clause and not clause.args.get("recursive") else queries
            if table_name(table).lower() in {each.alias.lower() for each in seen}:
                return True
        child, node = node, node.parent
    return False


def table_name(table: exp.Table) -> str:
    return ".".join(part.name for part in table.parts)


def position(text: str, offset: int) -> tuple[int, int]:
    """The line and column (both from 1) of an offset."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def span_of(node: exp.Expr) -> Span | None:
    """The part of the text that an expression was read from; of other trees that from the first to the last name."""
    if "span" in node.meta:
        return cast("Span", node.meta["span"])
    found = [each.meta for each in node.walk() if "start" in each.meta]
    return (min(each["start"] for each in found), max(each["end"] for each in found) + 1) if found else None


def outside_brackets(tokens: Sequence[Token]) -> Iterator[int]:
    """The indexes of the tokens that are in no brackets; an opening bracket itself is one of them."""
    depth = 0
    for index, token in enumerate(tokens):
        depth -= token.kind in CLOSING
        if depth == 0 and token.kind not in CLOSING:
            yield index
        depth += token.kind in OPENING


def closing(tokens: Sequence[Token], opening: int) -> int:
    """The index of the bracket that closes the one at `opening`, or `SqlError`."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += (tokens[index].kind in OPENING) - (tokens[index].kind in CLOSING)
        if depth == 0:
            return index
    raise SqlError(f"'{tokens[opening].text}' is not closed", tokens[opening].start)


def cut(tokens: Sequence[Token], at: Iterable[int]) -> list[Sequence[Token]]:
    """The tokens between the tokens at these indexes."""
    ends = [*at, len(tokens)]
    starts = [0, *(index + 1 for index in ends[:-1])]
    return [tokens[start:end] for start, end in zip(starts, ends, strict=True)]


def _first(text: str) -> int:
    return len(text) - len(text.lstrip())


def _semicolons(text: str) -> list[int]:
    return [index for index, each in enumerate(tokens_of(text)) if each.kind == "SEMICOLON"]


def _check_start(text: str) -> None:
    tokens = tokens_of(text)
    if not tokens:
        raise SqlError("the SQL is empty", 0, "write SELECT … FROM …")
    if tokens[0].kind in {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "L_PAREN"}:
        return
    close = nearest(tokens[0].text, ["select", "with"])
    hint = f"did you mean '{close}'?" if close else "write SELECT … FROM …, and a sink for where the rows go"
    raise SqlError("SQL must start with SELECT", tokens[0].start, hint)


def _syntax_error(text: str, details: dict[str, Any]) -> SqlError:
    marked = details.get("highlight") or ""
    lines = text.split("\n")[: (details.get("line") or 1) - 1]
    offset = sum(len(line) + 1 for line in lines) + (details.get("col") or 1) - len(marked)
    hint = "of a VARIANT write variant_get(v, '$.a.b', 'int')" if marked in {".", "["} else ""
    message = _readable(str(details["description"]).strip().rstrip("."), marked)
    return SqlError(message, min(max(offset, 0), len(text)), hint)


def _readable(message: str, marked: str) -> str:
    """sqlglot's message without the names of its classes."""
    if message.startswith("Required keyword"):
        return f"the SQL is incomplete after '{marked}'"
    if "Unexpected token" in message:
        return f"unexpected '{marked}'"
    if message.startswith("Expected table name"):
        return f"expected a table name after '{marked}'"
    message = re.sub(r"\s*(but got )?<[^>]*>", "", message)
    return f"{message} near '{marked}'" if marked else message


def _unterminated(text: str) -> SqlError:
    opened = [each for each in QUOTED.finditer(text) if each["open"]]
    return (
        SqlError(f"unterminated {opened[0]['open']}", opened[0].start()) if opened else SqlError("this is not SQL", 0)
    )
