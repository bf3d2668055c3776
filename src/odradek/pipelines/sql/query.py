"""One SELECT over named tables: its items, tables, conditions, groups and calls, each with its span in the step's text.

The tree of sqlglot says what a SELECT has, its tokens say where it is. Where the two disagree, the SELECT is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from odradek.pipelines.sql.blocks import Part
from odradek.pipelines.sql.functions import Kind, kind_of
from odradek.pipelines.sql.text import (
    LITERAL_FUNCTIONS,
    WINDOWS,
    Span,
    SqlError,
    Token,
    between_commas,
    closing,
    exp,
    outside_brackets,
    parse_query,
    table_name,
    tokens_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from odradek.pipelines.sql.columns import Columns

UNITS_MS = {
    "millisecond": 1, "second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000,
}  # fmt: skip
LENGTH = re.compile(rf"([+-]?\s*\d+)\s+({'|'.join(UNITS_MS)})s?\b\s*", re.IGNORECASE)
LENGTHS = re.compile(rf"\s*(?:interval\s+)?(?:{LENGTH.pattern})+", re.IGNORECASE)
UNIT_FIRST = frozenset(
    ("dateadd", "date_add", "timestampadd", "datediff", "date_diff", "timediff", "timestampdiff")
)  # with three arguments the first one is a unit: date_add(day, 1, at)
PRESENT = ("now", "today", "tomorrow", "yesterday")
CLAUSES = {  # arguments of sqlglot's SELECT by the tokens that they begin with
    "SELECT": "expressions", "FROM": "from_", "WHERE": "where", "GROUP_BY": "group", "HAVING": "having",
    "ORDER_BY": "order", "SORT_BY": "sort", "CLUSTER_BY": "cluster", "DISTRIBUTE_BY": "distribute", "LIMIT": "limit",
    "OFFSET": "offset", "QUALIFY": "qualify", "WINDOW": "windows",
}  # fmt: skip
ROW_BY_ROW = frozenset(("expressions", "from_", "where", "group", "having", "joins", "laterals", "hint"))
NODES = {
    "Window": "OVER", "Rollup": "ROLLUP", "Cube": "CUBE", "GroupingSets": "GROUPING SETS", "Pivot": "PIVOT",
    "WithinGroup": "WITHIN GROUP", "TableSample": "TABLESAMPLE", "IgnoreNulls": "IGNORE NULLS",
}  # fmt: skip
JOIN_STARTS = frozenset(
    ("JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "SEMI", "ANTI", "COMMA", "LATERAL")
)


class Join(StrEnum):
    """How a table joins those before it. A comma is a CROSS join."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
    CROSS = "cross"


@dataclass(frozen=True, slots=True)
class TableRead:
    """A table of FROM; its name is that of the hidden table where it names a query of WITH or FROM."""

    table: str
    alias: str
    join: Join | None
    on: exp.Expr | None
    on_span: Span | None
    using: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Lateral:
    """A LATERAL VIEW; `columns` is empty if Spark names them."""

    alias: str
    columns: tuple[str, ...]
    tree: exp.Expr


@dataclass(frozen=True, slots=True)
class Item:
    """An expression of SELECT or GROUP BY, without its alias. `names` is empty for stars, and if Spark makes a name."""

    names: tuple[str, ...]  # several for `AS (k, v)`
    span: Span
    tree: exp.Expr
    star_of: str | None = None  # "" for `*`, the table or struct for `x.*`
    excepted: tuple[str, ...] = ()  # of `* EXCEPT (…)`

    @property
    def name(self) -> str:
        return self.names[0] if len(self.names) == 1 else ""


@dataclass(frozen=True, slots=True)
class Reference:
    """A column that an expression names. `parts` are the column and its fields, without the table in front of it."""

    parts: tuple[str, ...]  # ("*",) for a star in a call
    table: str | None  # the alias of a table or LATERAL VIEW, or "window"; None if it is not known
    span: Span
    item: Item | None = None  # the item of SELECT whose alias this is


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function; its span includes FILTER."""

    name: str
    arguments: tuple[Span, ...]  # without DISTINCT
    span: Span
    parent: str  # the function whose argument it is, or ""
    tree: exp.Expr
    is_distinct: bool = False
    filter: Span | None = None  # FILTER (…)


@dataclass(frozen=True, slots=True)
class WindowCall:
    """The window of GROUP BY."""

    function: str  # window or session_window
    time: str | None  # the column, if it is one
    lengths: tuple[str, ...]  # as written
    lengths_ms: tuple[int | None, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Query:
    """One SELECT. All spans are those of the step's text."""

    part: Part
    tree: exp.Select
    items: tuple[Item, ...]
    tables: tuple[TableRead, ...]
    laterals: tuple[Lateral, ...]
    where: Span | None
    group: tuple[Item, ...]  # ordinals, aliases and ALL are resolved to items
    having: Span | None
    window: WindowCall | None
    subqueries: tuple[exp.Query, ...]  # in expressions
    calls: tuple[Call, ...]  # those in subqueries included
    clauses: frozenset[str]  # those that are not row by row: "ORDER BY", "OVER", "DISTINCT" …
    columns: tuple[Columns | None, ...]  # of each table
    names: tuple[Reference, ...]

    @classmethod
    def read(cls, part: Part, columns_of: Callable[[str], Columns | None]) -> Query:
        """Reads one SELECT, or raises `SqlError`."""
        return _Reader(part, columns_of).query()

    @classmethod
    def of_expression(cls, text: str, table: str, columns_of: Callable[[str], Columns | None]) -> Query:
        """Reads an expression over one table; spans are those of the expression's text."""
        quoted = table.replace("`", "``")
        return cls.read(Part(f"SELECT {text}\nFROM `{quoted}`", -len("SELECT "), {}), columns_of)

    def references(self, within: Span | None = None) -> tuple[Reference, ...]:
        """The columns that the SELECT names, without those in subqueries."""
        return self.names if within is None else tuple(each for each in self.names if is_within(each.span, within))

    def text(self, span: Span) -> str:
        return self.part.text[span[0] - self.part.start : span[1] - self.part.start]


def is_within(inner: Span, outer: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def milliseconds(text: str) -> int | None:
    """The length of '1 hour 30 minutes'; None for months, for fractions, and for what is no length."""
    if LENGTHS.fullmatch(text) is None:
        return None
    return sum(int(number.replace(" ", "")) * UNITS_MS[unit.lower()] for number, unit in LENGTH.findall(text))


class _Reader:
    def __init__(self, part: Part, columns_of: Callable[[str], Columns | None]) -> None:
        self._part = part
        try:
            self._tree = parse_query(part.text)
        except SqlError as error:
            raise SqlError(error.message, error.offset + part.start, error.hint) from error
        self._tokens = tokens_of(part.text)
        self._clauses = dict(self._clause_tokens())
        self._items = tuple(self._read_items())
        sources = self._tree.args.get("from_")
        joins: list[exp.Expr] = self._tree.args.get("joins") or []
        self._sources: list[exp.Expr] = [*([] if sources is None else [sources.this]), *(each.this for each in joins)]
        self._tables = self._read_tables(joins)
        self._columns = tuple(columns_of(each.table) for each in self._tables)
        views = self._tree.args.get("laterals") or ()
        self._laterals = tuple(Lateral(each.alias, tuple(each.alias_column_names), each.this) for each in views)
        self._calls = self._read_calls()
        self._group = tuple(self._read_group())

    def query(self) -> Query:
        own = [each for each in self._own_nodes() if each is not self._tree]
        references = tuple(self._references())
        named = {each.parts[0].lower(): each for each in references if each.table is None and each.item is None}
        literal = [named[name] for name in LITERAL_FUNCTIONS if name in named]
        calls = [*self._calls, *(Call(each.parts[0].lower(), (), each.span, "", exp.Null()) for each in literal)]
        present = [each.this for each in own if isinstance(each, exp.Cast) and _is_present(each.this)]
        calls += [Call("now", (), self._names_span(each, each), "", each) for each in present]
        return Query(
            part=self._part,
            tree=self._tree,
            items=self._items,
            tables=self._tables,
            laterals=self._laterals,
            where=self._clause_span("WHERE"),
            group=self._group,
            having=self._clause_span("HAVING"),
            window=self._window(),
            subqueries=tuple(each for each in own if isinstance(each, exp.Query)),
            calls=tuple(calls),
            clauses=frozenset(self._other_clauses()),
            columns=self._columns,
            names=references,
        )

    def _span(self, tokens: Sequence[Token]) -> Span:
        return tokens[0].start + self._part.start, tokens[-1].end + self._part.start

    def _error(self, message: str, tokens: Sequence[Token], hint: str = "") -> SqlError:
        return SqlError(message, (tokens[0].start if tokens else 0) + self._part.start, hint)

    def _clause_tokens(self) -> Iterator[tuple[str, Sequence[Token]]]:
        """The tokens of each clause, without the word that begins it."""
        starts = [
            index
            for index in outside_brackets(self._tokens)
            if self._tree.args.get(CLAUSES.get(self._tokens[index].kind, ""))
            and self._tokens[index - 1].kind not in {"DOT", "DISTINCT"}  # `x.limit`, IS DISTINCT FROM
        ]
        for start, end in zip(starts, [*starts[1:], len(self._tokens)], strict=True):
            yield self._tokens[start].kind, self._tokens[start + 1 : end]

    def _clause_span(self, kind: str) -> Span | None:
        tokens = self._clauses.get(kind)
        return self._span(tokens) if tokens else None

    def _read_items(self) -> Iterator[Item]:
        tokens = self._clauses.get("SELECT", ())
        while tokens and tokens[0].kind in {"HINT", "DISTINCT", "ALL"}:
            tokens = tokens[1:]
        yield from map(self._item, self._tree.expressions, self._each(tokens, self._tree.expressions))

    def _each(self, tokens: Sequence[Token], trees: Sequence[exp.Expr]) -> list[Sequence[Token]]:
        """The tokens of each expression of a list."""
        found = between_commas(tokens)
        if len(found) != len(trees) or not all(found):
            raise self._error("this list of expressions cannot be read", tokens, "put types with commas into cast(…)")
        return found

    def _item(self, tree: exp.Expr, tokens: Sequence[Token]) -> Item:
        names: tuple[str, ...] = ()
        if isinstance(tree, exp.Aliases):
            names = tuple(each.name for each in tree.args["expressions"])
            opening = next(each for each in range(len(tokens)) if closing(tokens, each) == len(tokens) - 1 and each)
            tokens = tokens[:opening]
        elif isinstance(tree, exp.Alias):
            names = (tree.alias,)
            tokens = tokens[:-1]
        if names:
            tokens = tokens[:-1] if tokens[-1].kind == "ALIAS" else tokens
            return Item(names, self._span(tokens), tree.this)
        star = tree.this if isinstance(tree, exp.Column) else tree
        if isinstance(star, exp.Star):
            excepted = tuple(each.name for each in star.args.get("except_") or ())
            owner = ".".join(part.name for part in tree.parts[:-1]) if isinstance(tree, exp.Column) else ""
            return Item((), self._span(tokens), tree, owner, excepted)
        return Item(_name_by_spark(tree), self._span(tokens), tree)

    def _read_tables(self, joins: Sequence[exp.Expr]) -> tuple[TableRead, ...]:
        found = []
        for source, join in zip(self._sources, [None, *joins], strict=False):
            if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
                continue  # among the clauses
            name, parts = table_name(source), source.parts
            condition = self._condition(parts[-1].meta["end"])
            found.append(
                TableRead(
                    table=self._part.renamed.get(name.lower(), name),
                    alias=source.alias or parts[-1].name,
                    join=None if join is None else _kind_of(join),
                    on=None if join is None or not condition else join.args.get("on"),
                    on_span=self._span(condition) if condition else None,
                    using=() if join is None else tuple(each.name for each in join.args.get("using") or ()),
                    span=self._names_span(parts[0], parts[-1]),
                )
            )
        return tuple(found)

    def _condition(self, position: int) -> Sequence[Token]:
        """The tokens of the condition of the table that is named at a position."""
        tokens = self._clauses["FROM"]
        kinds = [each.kind for each in tokens] + [""]
        behind = [index for index in outside_brackets(tokens) if tokens[index].start > position]
        ends = [
            index
            for index in behind
            if kinds[index] in JOIN_STARTS and kinds[index + 1] != "L_PAREN" and kinds[index - 1] != "DOT"
        ]
        end = ends[0] if ends else len(tokens)
        start = next((index for index in behind if kinds[index] == "ON" and index < end), end)
        return tokens[start + 1 : end]

    def _names_span(self, first: exp.Expr, last: exp.Expr) -> Span:
        return first.meta["start"] + self._part.start, last.meta["end"] + 1 + self._part.start

    def _read_calls(self) -> tuple[Call, ...]:
        indexes = {token.start: index for index, token in enumerate(self._tokens)}
        calls = [each for each in self._tree.find_all(exp.Anonymous) if each.find_ancestor(exp.Hint) is None]
        starts = sorted((indexes[each.meta["start"]], number) for number, each in enumerate(calls))
        return tuple(self._call(calls[number], index) for index, number in starts)

    def _call(self, tree: exp.Expr, index: int) -> Call:
        end = closing(self._tokens, index + 1)
        tokens = self._tokens[index + 2 : end]
        first = tree.expressions[0] if tree.expressions else None
        is_distinct = isinstance(first, exp.Distinct)
        arguments = between_commas(tokens[1:] if is_distinct else tokens)
        filtered: Span | None = None
        if [each.kind for each in self._tokens[end + 1 : end + 3]] == ["FILTER", "L_PAREN"]:
            start, end = end + 1, closing(self._tokens, end + 2)
            filtered = self._span(self._tokens[start : end + 1])
        above = tree.parent.parent if isinstance(tree.parent, exp.Filter) else tree.parent
        return Call(
            name=_call_name(tree),
            arguments=tuple(self._span(each) for each in arguments if each),
            span=self._span(self._tokens[index : end + 1]),
            parent=_call_name(above),
            tree=tree,
            is_distinct=is_distinct,
            filter=filtered,
        )

    def _read_group(self) -> Iterator[Item]:
        group = self._tree.args.get("group")
        if group is None:
            return
        if group.args.get("all") and not group.expressions:
            yield from (each for each in self._items if not self._has_aggregate(each))
            return
        tokens = self._clauses["GROUP_BY"]
        if any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets", "totals")):
            return  # among the clauses
        for tree, own in zip(group.expressions, self._each(tokens, group.expressions), strict=True):
            yield self._selected(tree) or Item((), self._span(own), tree)

    def _has_aggregate(self, item: Item) -> bool:
        return any(kind_of(each.name) is Kind.AGGREGATE and is_within(each.span, item.span) for each in self._calls)

    def _selected(self, tree: exp.Expr) -> Item | None:
        """The item of SELECT that an ordinal or an alias in GROUP BY stands for."""
        if isinstance(tree, exp.Literal) and not tree.is_string:
            number = int(tree.name) if tree.name.isdigit() else 0
            return self._items[number - 1] if 0 < number <= len(self._items) else None
        if not isinstance(tree, exp.Column) or len(tree.parts) > 1:
            return None
        return self._resolve((tree.name,), self._items)[2]

    def _window(self) -> WindowCall | None:
        keys = {id(each.tree) for each in self._group}
        calls = [each for each in self._calls if each.name in WINDOWS and id(each.tree) in keys]
        if len(calls) != 1 or len(calls[0].arguments) < 2:
            return None
        call = calls[0]
        time, *lengths = call.tree.expressions
        texts = tuple(each.name if isinstance(each, exp.Literal) else each.sql("spark") for each in lengths)
        column = time.parts[-1].name if isinstance(time, exp.Column) else None
        return WindowCall(call.name, column, texts, tuple(map(milliseconds, texts)), call.span)

    def _own_nodes(self) -> Iterator[exp.Expr]:
        """The nodes outside subqueries and hints; of a subquery only its root."""
        return self._tree.walk(
            prune=lambda each: isinstance(each, (exp.Query, exp.Hint, exp.Star)) and each is not self._tree
        )

    def _references(self) -> Iterator[Reference]:
        stars = {id(each.tree) for each in self._items if each.star_of is not None}
        for node in self._own_nodes():
            if id(node) in stars or (isinstance(node, exp.Star) and isinstance(node.parent, exp.Column)):
                continue
            if isinstance(node, exp.Star) and _call_name(node.parent) != "count":
                yield Reference(("*",), None, self._names_span(node, node))
            elif isinstance(node, exp.Column) and not _is_unit(node):
                yield self._reference(node)

    def _reference(self, column: exp.Column) -> Reference:
        parts = column.parts
        span = self._names_span(parts[0], parts[-1])
        names = tuple("*" if isinstance(each, exp.Star) else each.name for each in parts)
        having, group = self._clause_span("HAVING"), self._clause_span("GROUP_BY")
        aliases = self._items if any(each and is_within(span, each) for each in (having, group)) else ()
        own = [index for index, each in enumerate(self._items) if is_within(span, each.span)]
        aliases = self._items[: own[0]] if own else aliases
        table, rest, item = self._resolve(names, aliases, is_having=bool(having and is_within(span, having)))
        return Reference(rest, table, span, item)

    def _resolve(
        self, names: tuple[str, ...], aliases: Sequence[Item], *, is_having: bool = False
    ) -> tuple[str | None, tuple[str, ...], Item | None]:
        """The table, the column with its fields, and the item of SELECT that a name stands for. HAVING sees aliases
        first, other expressions columns first."""
        first = names[0].lower()
        item = next((each for each in aliases if each.name.lower() == first), None)
        if item is not None and not is_having and item.names == _name_by_spark(item.tree):
            item = None  # not an alias
        if item is not None and is_having:
            return None, names, item
        known = dict(zip((each.alias for each in self._tables), self._columns, strict=True))
        made: dict[str, tuple[str, ...]] = {each.alias: each.columns for each in self._laterals}
        for alias, columns in (*known.items(), *made.items()):
            if len(names) > 1 and alias.lower() == first and (not columns or names[1] in columns or names[1] == "*"):
                return alias, names[1:], None
        for alias, own in (*known.items(), *made.items()):
            if own and first in (each.lower() for each in (own if isinstance(own, tuple) else own.names)):
                return alias, names, None
        if first in WINDOWS and any(each.name == first for each in self._calls):
            return "window", names[1:] or names, None
        is_only = len(self._tables) == 1 and self._columns[0] is None and all(made.values())
        if item is None and is_only and first not in LITERAL_FUNCTIONS:
            return self._tables[0].alias, names, None
        return None, names, item

    def _other_clauses(self) -> Iterator[str]:
        """The clauses that are not row by row. What is not known here is one of them."""
        words = {arg: kind.replace("_", " ") for kind, arg in CLAUSES.items()}
        group = self._tree.args.get("group")
        for args, known in (
            (self._tree.args, ROW_BY_ROW),
            ({} if group is None else group.args, {"expressions", "all"}),
        ):
            names = [key for key, value in args.items() if value and key not in known]
            yield from (words.get(key, key.replace("_", " ").strip().upper()) for key in names)
        for node in self._own_nodes():
            yield from (clause for kind, clause in NODES.items() if isinstance(node, getattr(exp, kind)))
        for source in self._sources:
            if isinstance(source, exp.Lateral):
                yield "LATERAL (SELECT …)"
            elif not isinstance(source, exp.Table) or source.args.get("joins"):
                yield "parentheses around a join"
            elif not isinstance(source.this, exp.Identifier):
                yield "a table function"
            elif source.alias_column_names:
                yield "names for the columns of a table"
        if any(each.args.get("method") for each in self._tree.args.get("joins") or ()):
            yield "NATURAL JOIN"


def _name_by_spark(tree: exp.Expr) -> tuple[str, ...]:
    """The name of an expression without an alias: that of a column, or of a column that is cast."""
    tree = tree.unnest()
    is_cast_column = isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Column) and len(tree.this.parts) == 1
    column = tree.this if is_cast_column else tree
    is_named = isinstance(column, exp.Column) and column.name.lower() not in LITERAL_FUNCTIONS
    return (column.name,) if is_named else ()


def _kind_of(join: exp.Expr) -> Join:
    words = {str(join.args.get(key) or "").lower() for key in ("kind", "side")}
    return next((each for each in (Join.SEMI, Join.ANTI, *Join) if each in words), Join.INNER)


def _call_name(call: exp.Expr | None) -> str:
    if not isinstance(call, exp.Anonymous):
        return ""
    name = call.this if isinstance(call.this, str) else call.this.name
    return str(name).lower()


def _is_present(tree: exp.Expr) -> bool:
    """Whether a literal is a time that moves: TIMESTAMP 'now', CAST('today' AS DATE)."""
    return isinstance(tree, exp.Literal) and tree.name.strip().lower() in PRESENT


def _is_unit(column: exp.Column) -> bool:
    call = column.parent
    if call is None or _call_name(call) not in UNIT_FIRST:
        return False
    return len(call.expressions) == 3 and call.expressions[0] is column and len(column.parts) == 1
