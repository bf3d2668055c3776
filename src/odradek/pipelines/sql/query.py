"""One SELECT over named tables: items, tables, conditions, groups and calls, with their spans in the step's text."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.sql.blocks import Part
from odradek.pipelines.sql.columns import Columns
from odradek.pipelines.sql.functions import Kind, kind_of
from odradek.pipelines.sql.text import (
    LITERAL_FUNCTIONS,
    WINDOWS,
    Span,
    SqlError,
    exp,
    parse_query,
    span_of,
    table_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

UNIT_FIRST = frozenset(
    ("dateadd", "date_add", "timestampadd", "datediff", "date_diff", "timediff", "timestampdiff")
)  # with three arguments the first one is a unit: date_add(day, 1, at)
CLAUSES = {  # arguments of sqlglot's SELECT whose names are not those of their clauses
    "order": "ORDER BY", "sort": "SORT BY", "cluster": "CLUSTER BY", "distribute": "DISTRIBUTE BY", "windows": "WINDOW",
}  # fmt: skip
ROW_BY_ROW = frozenset(("expressions", "from_", "where", "group", "having", "joins", "laterals", "hint"))
NODES = {
    "Window": "OVER", "Rollup": "ROLLUP", "Cube": "CUBE", "GroupingSets": "GROUPING SETS", "Pivot": "PIVOT",
    "WithinGroup": "WITHIN GROUP", "TableSample": "TABLESAMPLE", "IgnoreNulls": "IGNORE NULLS",
    "Version": "FOR SYSTEM_TIME AS OF",
}  # fmt: skip
WRAPPERS = ("Filter", "Window", "WithinGroup", "IgnoreNulls", "RespectNulls")  # of a call, by what follows it


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
    using: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Lateral:
    """A LATERAL VIEW; `columns` is empty if Spark names them."""

    alias: str
    columns: tuple[str, ...]
    tree: exp.Expr
    is_outer: bool = False


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
    """A call of a function; its span includes FILTER and the like."""

    name: str
    arguments: tuple[Span, ...]  # without DISTINCT
    span: Span
    parent: str  # the function whose argument it is, or ""
    tree: exp.Expr
    is_distinct: bool = False
    filter: Span | None = None  # the condition of FILTER (WHERE …)


@dataclass(frozen=True, slots=True)
class WindowCall:
    """The window of GROUP BY."""

    function: str  # window or session_window
    time: str | None  # the column, if it is one
    span: Span


class Query:
    """One SELECT. All spans are those of the step's text."""

    def __init__(self, part: Part, columns_of: Callable[[str], Columns | None]) -> None:
        """Reads one SELECT, or raises `SqlError`."""
        self.part = part
        try:
            self.tree = parse_query(part.text)
        except SqlError as error:
            raise SqlError(error.message, error.offset + part.start, error.hint) from error
        arguments = self.tree.args
        from_ = arguments.get("from_")
        joins: list[exp.Expr] = arguments.get("joins") or []
        self._sources = [*([] if from_ is None else [(from_.this, None)]), *((each.this, each) for each in joins)]
        self._nodes = [each for each in self._own_nodes() if each is not self.tree]
        self.tables = tuple(self._read_tables())
        self.columns = tuple(columns_of(each.table) for each in self.tables)
        self.items = tuple(map(self._item, self.tree.expressions))
        views = arguments.get("laterals") or ()
        self.laterals = tuple(
            Lateral(each.alias, tuple(each.alias_column_names), each.this, bool(each.args.get("outer")))
            for each in views
        )
        self.where, self.having = (
            None if found is None else self.span(found.this) for found in map(arguments.get, ("where", "having"))
        )
        self.subqueries = tuple(each for each in self._nodes if isinstance(each, exp.Query))  # in expressions
        self.calls = tuple(self._read_calls())  # those in subqueries included
        self.group = tuple(self._read_group())  # ordinals, aliases and ALL are resolved to items
        self.window = self._read_window()
        self._names = tuple(self._read_names())
        self.calls += tuple(self._calls_without_parentheses())
        self.clauses = frozenset(self._other_clauses())  # those that are not row by row: "ORDER BY", "OVER" …

    @classmethod
    def of_expression(cls, text: str, table: str, columns_of: Callable[[str], Columns | None]) -> Query:
        """Reads an expression over one table; spans are those of the expression's text."""
        quoted = table.replace("`", "``")
        select, before = f"SELECT {text}", -len("SELECT ")
        try:
            return cls(Part(f"{select}\nFROM `{quoted}`", before, {}), columns_of)
        except SqlError as error:
            if error.offset > len(text):
                cls(Part(select, before, {}), columns_of)  # its error names the end of the expression
            raise

    def references(self, within: Span | None = None) -> tuple[Reference, ...]:
        """The columns that the SELECT names, without those in subqueries."""
        return self._names if within is None else tuple(each for each in self._names if is_within(each.span, within))

    def text(self, span: Span) -> str:
        return self.part.text[span[0] - self.part.start : span[1] - self.part.start]

    def span(self, tree: exp.Expr) -> Span:
        """The position of an expression of the tree."""
        found = span_of(tree)
        if found is None:
            raise SqlError(f"the position of '{tree.sql()}' is not known", self.part.start)
        return found[0] + self.part.start, found[1] + self.part.start

    def _item(self, tree: exp.Expr) -> Item:
        if isinstance(tree, exp.Aliases):
            return Item(tuple(each.name for each in tree.args["expressions"]), self.span(tree.this), tree.this)
        if isinstance(tree, exp.Alias):
            return Item((tree.alias,), self.span(tree.this), tree.this)
        star = tree.this if isinstance(tree, exp.Column) else tree
        if isinstance(star, exp.Star):
            excepted = tuple(each.name for each in star.args.get("except_") or ())
            owner = ".".join(part.name for part in tree.parts[:-1]) if isinstance(tree, exp.Column) else ""
            return Item((), self.span(tree), tree, owner, excepted)
        return Item(_name_by_spark(tree, self.columns), self.span(tree), tree)

    def _read_tables(self) -> Iterator[TableRead]:
        for source, join in self._sources:
            if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
                continue  # among the clauses
            name, parts = table_name(source), source.parts
            condition = None if join is None else join.args.get("on")
            is_written = condition is not None and span_of(condition) is not None  # sqlglot adds ON TRUE
            yield TableRead(
                table=self.part.renamed.get(name.lower(), name),
                alias=source.alias or parts[-1].name,
                join=None if join is None else _kind_of(join),
                on=condition if is_written else None,
                using=() if join is None else tuple(each.name for each in join.args.get("using") or ()),
                span=(parts[0].meta["start"] + self.part.start, parts[-1].meta["end"] + 1 + self.part.start),
            )

    def _read_calls(self) -> Iterator[Call]:
        calls = [each for each in self.tree.find_all(exp.Anonymous) if each.find_ancestor(exp.Hint) is None]
        for tree in sorted(calls, key=lambda each: int(each.meta["start"])):
            outer: exp.Expr = tree
            condition = None
            while (above := outer.parent) is not None and type(above).__name__ in WRAPPERS and above.this is outer:
                outer, condition = above, above.expression.this if isinstance(above, exp.Filter) else condition
            is_distinct = bool(tree.expressions) and isinstance(tree.expressions[0], exp.Distinct)
            yield Call(
                name=_call_name(tree),
                arguments=tuple(map(self.span, (tree.expressions[0] if is_distinct else tree).expressions)),
                span=self.span(outer),
                parent=_call_name(outer.parent),
                tree=tree,
                is_distinct=is_distinct,
                filter=None if condition is None else self.span(condition),
            )

    def _calls_without_parentheses(self) -> Iterator[Call]:
        named = {each.parts[0].lower(): each for each in self._names if each.table is None and each.item is None}
        for name in LITERAL_FUNCTIONS:
            if name in named:
                yield Call(name, (), named[name].span, "", exp.Null())

    def _read_group(self) -> Iterator[Item]:
        group = self.tree.args.get("group")
        if group is None or any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets", "totals")):
            return  # the latter are among the clauses
        if group.args.get("all") and not group.expressions:
            yield from (each for each in self.items if not self._has_aggregate(each))
        for tree in group.expressions:
            yield self._selected(tree) or Item((), self.span(tree), tree)

    def _has_aggregate(self, item: Item) -> bool:
        return any(kind_of(each.name) is Kind.AGGREGATE and is_within(each.span, item.span) for each in self.calls)

    def _selected(self, tree: exp.Expr) -> Item | None:
        """The item of SELECT that an ordinal or an alias in GROUP BY stands for."""
        if isinstance(tree, exp.Literal) and not tree.is_string:
            number = int(tree.name) if tree.name.isdigit() else 0
            return self.items[number - 1] if 0 < number <= len(self.items) else None
        if not isinstance(tree, exp.Column) or len(tree.parts) > 1:
            return None
        return self._resolve((tree.name,), self.items)[2]

    def _read_window(self) -> WindowCall | None:
        keys = {id(each.tree) for each in self.group}
        calls = [each for each in self.calls if each.name in WINDOWS and id(each.tree) in keys]
        if len(calls) != 1 or len(calls[0].arguments) < 2:
            return None
        time = calls[0].tree.expressions[0]
        column = time.parts[-1].name if isinstance(time, exp.Column) else None
        return WindowCall(calls[0].name, column, calls[0].span)

    def _own_nodes(self) -> Iterator[exp.Expr]:
        """The nodes outside subqueries and hints; of a subquery only its root."""
        return self.tree.walk(
            prune=lambda each: isinstance(each, (exp.Query, exp.Hint, exp.Star)) and each is not self.tree
        )

    def _read_names(self) -> Iterator[Reference]:
        stars = {id(each.tree) for each in self.items if each.star_of is not None}
        for node in self._nodes:
            if id(node) in stars or (isinstance(node, exp.Star) and isinstance(node.parent, exp.Column)):
                continue
            if isinstance(node, exp.Star) and _call_name(node.parent) != "count":
                yield Reference(("*",), None, self.span(node))
            elif isinstance(node, exp.Column) and not _is_unit(node):
                yield self._reference(node)

    def _reference(self, column: exp.Column) -> Reference:
        span = self.span(column)
        names = tuple("*" if isinstance(each, exp.Star) else each.name for each in column.parts)
        is_having = self.having is not None and is_within(span, self.having)
        own = [index for index, each in enumerate(self.items) if is_within(span, each.span)]
        is_of_groups = is_having or column.find_ancestor(exp.Group, exp.Select) is self.tree.args.get("group")
        aliases = self.items[: own[0]] if own else self.items if is_of_groups else ()
        is_of_window = any(each.name in WINDOWS and is_within(span, each.span) for each in self.calls)
        aliases = () if is_of_window else aliases  # they may be computed from the window
        table, rest, item = self._resolve(names, aliases, is_having=is_having, is_of_window=is_of_window)
        return Reference(rest, table, span, item)

    def _resolve(
        self, names: tuple[str, ...], aliases: Sequence[Item], *, is_having: bool = False, is_of_window: bool = False
    ) -> tuple[str | None, tuple[str, ...], Item | None]:
        """The table, the column with its fields, and the item of SELECT that a name stands for. HAVING sees aliases
        first, other expressions columns first."""
        first = names[0].lower()
        item = next((each for each in aliases if each.name.lower() == first), None)
        if item is not None and is_having:
            return None, names, item
        if item is not None and item.names == _name_by_spark(item.tree, self.columns):
            item = None  # not an alias
        known = {each.alias: columns for each, columns in zip(self.tables, self.columns, strict=True)}
        known |= {each.alias: Columns(dict.fromkeys(each.columns)) if each.columns else None for each in self.laterals}
        for alias, columns in known.items():
            if (
                len(names) > 1
                and alias.lower() == first
                and (columns is None or names[1] in columns or names[1] == "*")
            ):
                return alias, names[1:], None
        for table in self.tables:
            if table.join is Join.RIGHT and first in {name.lower() for name in table.using}:
                return table.alias, names, None  # USING has the value of the side that is kept
        for alias, columns in known.items():
            if columns is not None and first in columns:
                return alias, names, None
        if first in WINDOWS and not is_of_window and any(each.name == first for each in self.calls):
            return "window", names[1:] or names, None
        unknown = [alias for alias, columns in known.items() if columns is None]
        if item is None and len(unknown) == 1 and first not in LITERAL_FUNCTIONS:
            return unknown[0], names, None
        return None, names, item

    def _other_clauses(self) -> Iterator[str]:
        """The clauses that are not row by row. What is not known here is one of them."""
        group = self.tree.args.get("group")
        of_group = {} if group is None else group.args
        for arguments, known in ((self.tree.args, ROW_BY_ROW), (of_group, {"expressions", "all"})):
            names = [key for key, value in arguments.items() if value and key not in known]
            yield from (CLAUSES.get(key, key.replace("_", " ").strip().upper()) for key in names)
        for node in self._nodes:
            yield from (clause for kind, clause in NODES.items() if isinstance(node, getattr(exp, kind)))
        for source, _ in self._sources:
            if isinstance(source, exp.Unnest):
                yield "UNNEST"
            elif isinstance(source, exp.Lateral):
                yield "LATERAL (SELECT …)"
            elif not isinstance(source, exp.Table) or source.args.get("joins"):
                yield "parentheses around a join"
            elif not isinstance(source.this, exp.Identifier):
                yield "a table function"
            elif source.alias_column_names:
                yield "names for the columns of a table"
        methods = [str(join.args.get("method") or "").upper() for _, join in self._sources if join is not None]
        distinct = self.tree.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            yield "DISTINCT ON"
        yield from (f"{method} JOIN" for method in methods if method)


def is_within(inner: Span, outer: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _name_by_spark(tree: exp.Expr, known: Sequence[Columns | None]) -> tuple[str, ...]:
    """The name of an expression without an alias: that of a column, or of a column that is cast. `user` is a column
    where a table has one."""
    tree = tree.unnest()
    is_cast_column = isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Column) and len(tree.this.parts) == 1
    column = tree.this if is_cast_column else tree
    if not isinstance(column, exp.Column):
        return ()
    is_column = any(columns is not None and column.name in columns for columns in known)
    return (column.name,) if is_column or column.name.lower() not in LITERAL_FUNCTIONS else ()


def _kind_of(join: exp.Expr) -> Join:
    words = {str(join.args.get(key) or "").lower() for key in ("kind", "side")}
    return next((each for each in (Join.SEMI, Join.ANTI, *Join) if each in words), Join.INNER)


def _call_name(call: exp.Expr | None) -> str:
    if not isinstance(call, exp.Anonymous):
        return ""
    name = call.this if isinstance(call.this, str) else call.this.name
    return str(name).lower()


def _is_unit(column: exp.Column) -> bool:
    call = column.parent
    if call is None or _call_name(call) not in UNIT_FIRST:
        return False
    return len(call.expressions) == 3 and call.expressions[0] is column and len(column.parts) == 1
