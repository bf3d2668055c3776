"""The tables of a SELECT, and the columns that its joins and conditions equate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.column_types import Decimal, Primitive
from odradek.pipelines.definition.sql_columns import scope_of, type_of, with_ctes
from odradek.pipelines.definition.sql_types import DATE
from odradek.pipelines.definition.sql_written import excepted_columns
from odradek.pipelines.planning.equal_types import determines
from odradek.pipelines.planning.group_columns import STATIC, Column, Kind, Rows, changing, holding, numbered
from odradek.pipelines.planning.queries import JoinType, argument, has_parentheses, terms_of
from odradek.pipelines.planning.window_parts import COARSE, WINDOW_PART, shows_offset, unit_left

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from sqlglot import exp

    from odradek.pipelines.definition.column_types import ColumnType
    from odradek.pipelines.definition.sql_scope import Tables

    TypeOf = Callable[[exp.Expr], ColumnType | None]  # returns the type of a column if it is known

EXACT_TYPES = frozenset(("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL"))
TEXT_TYPES = frozenset(("TEXT", "VARCHAR", "CHAR"))
FRACTIONS = (Primitive("FLOAT"), Primitive("DOUBLE"))
WINDOW_ENDS = (["start"], ["end"])  # the fields of a window, each of which determines the other


class Scope:
    """The tables that a SELECT reads, and the rows of their join; `type_of` returns the type of a column if known."""

    def __init__(
        self,
        rows: Rows = STATIC,
        by_name: dict[str, Rows] | None = None,
        type_of: TypeOf = lambda _column: None,
    ) -> None:
        self.rows = rows
        self.type_of = type_of
        self._determined: list[tuple[exp.Column, exp.Column]] = []  # a column, and the other that it determines
        self._copies: set[tuple[str, str]] = set()  # a column that is null or equal to another, and the other
        self.by_name = dict(by_name or {})

    def add(self, joined: Scope) -> None:
        """Adds the tables of another scope, and what is known of their columns."""
        self.by_name |= joined.by_name
        self._determined += joined._determined
        self._copies |= joined._copies

    def change(self) -> None:
        """Notes that the rows of a join may become others."""
        self.by_name = {name: changing(each) for name, each in self.by_name.items()}
        self._determined, self._copies = [], set()

    def forget_order(self) -> None:
        """Notes that the order of the columns behind a star is not known."""
        self.rows = replace(self.rows, is_ordered=False)
        self.by_name = {name: replace(each, is_ordered=False) for name, each in self.by_name.items()}

    def resolve(self, node: exp.Expr) -> Column | None:
        """The column that a name stands for: of a table, of all tables, or a field of a struct."""
        from sqlglot import exp  # noqa: PLC0415 - parsed already

        if isinstance(node, exp.Coalesce):
            original = self._original([node.this, *node.expressions])
            return None if original is None else self.resolve(original)
        if leaves_out_fractions(node, self.type_of):
            return Column(Kind.CHANGING if (self.resolve(node.this.unnest()) or Column()).kind else Kind.FIXED)
        if not isinstance(node, exp.Column):
            return None
        names = [part.name.lower() for part in node.parts]
        is_named = len(names) > 1 and names[0] in self.by_name
        found = self._found(self.by_name[names[0]], names[1:]) if is_named else self._found(self.rows, names)
        return replace(found, step="day") if self.type_of(node) == DATE else found

    def number(self, side: int) -> None:
        """Tells the parts of the tables on this side of a join from those of the other."""
        self.rows = numbered(self.rows, side)
        self.by_name = {name: numbered(each, side) for name, each in self.by_name.items()}

    def shared(self, join: exp.Expr, tables: Collection[str]) -> list[list[exp.Column]]:
        """The pairs of columns that USING or NATURAL equates in a join with these tables."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        names = [each.name.lower() for each in join.args.get("using") or ()]
        if join.args.get("method"):
            names = [name for table in tables for name in self.by_name[table].columns]
        others = [(name, other) for name in names for other, rows in self.by_name.items() if name in rows.columns]
        return [
            [exp.column(name, other), exp.column(name, table)]
            for name, other in others
            for table in tables
            if other not in tables and (len(tables) == 1 or name in self.by_name[table].columns)
        ]

    def equate(self, pairs: list[list[exp.Column]], kind: JoinType, tables: Collection[str]) -> None:
        """Columns that a join with tables equates determine the parts of an identity that the other does, if each of
        their values equals one value of the other. In an outer join, those of the side whose rows are all kept do."""
        for columns in pairs:
            kinds = [self.type_of(side) for side in columns]
            for at, side in enumerate(columns):
                is_kept = kind is JoinType.INNER or kind is (
                    JoinType.RIGHT if side.table.lower() in tables else JoinType.LEFT
                )
                if is_kept and determines(kinds[at], kinds[1 - at]):
                    self._determined.append((side, columns[1 - at]))
        has_changed = True
        while has_changed:  # columns may be equated through others
            has_changed = False
            for side, other in self._determined:
                has_changed = self._hold_parts_of(other, side) or has_changed

    def _hold_parts_of(self, other: exp.Column, side: exp.Column) -> bool:
        """Lets a column determine what another does; returns whether it determines more than before."""
        parts, before = ((self.resolve(each) or Column()).parts for each in (other, side))
        if not parts - before:
            return False
        self._hold([part.name.lower() for part in side.parts], parts)
        return (self.resolve(side) or Column()).parts != before

    def copy(self, condition: exp.Expr, tables: Collection[str]) -> None:
        """Columns of the right tables of a left join are null or equal to those that it equates with them."""
        for columns in equated(condition):
            kinds = [self.type_of(side) for side in columns]
            own = [side for side in columns if side.table.lower() in tables]
            others = [side for side in columns if side.table and side.table.lower() not in tables]
            if own and others and determines(kinds[0], kinds[1]) and determines(kinds[1], kinds[0]):
                self._copies.add((own[0].sql().lower(), others[0].sql().lower()))

    def _original(self, arguments: list[exp.Expr]) -> exp.Expr | None:
        """The argument of COALESCE to which all others are equal if they are not null."""
        texts = [each.sql().lower() for each in arguments]
        for at, text in enumerate(texts):
            if all((other, text) in self._copies for other in texts if other != text):
                return arguments[at]
        return None

    def _hold(self, names: list[str], parts: frozenset[str]) -> None:
        if len(names) == 2 and names[0] in self.by_name:
            self.by_name[names[0]] = holding(self.by_name[names[0]], names[1], parts)
        elif len(names) > 1:
            return  # a field of a struct
        self.rows = holding(self.rows, names[-1], parts)

    def _found(self, rows: Rows, names: list[str]) -> Column:
        column = rows.column(names[0])
        is_whole = len(names) == 1 or (names[1:] in WINDOW_ENDS and all(map(WINDOW_PART.fullmatch, column.parts)))
        return column if is_whole else Column(column.kind)

    def changing(self, columns: Iterable[exp.Column]) -> list[str]:
        """The names of the columns that change; those of tables inside a subquery are not of this scope."""
        return [each.name for each in columns if not self._is_inner(each) and (self.resolve(each) or Column()).kind]

    def _is_inner(self, column: exp.Column) -> bool:
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        tables = {alias_of(each) for each in column.root().find_all(exp.Table)} - set(self.by_name)
        return len(column.parts) > 1 and column.parts[0].name.lower() in tables

    def starred(self, star: exp.Expr) -> Rows:
        """The columns of `*`, `table.*` or `struct.*`."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        left_out = {each.name.lower() for each in excepted_columns(star)}
        rows = self.rows
        if isinstance(star, exp.Column):
            name = star.parts[0].name.lower()
            rows = self.by_name[name] if name in self.by_name else Rows(default=Column(self.rows.column(name).kind))
        return replace(rows, columns={name: each for name, each in rows.columns.items() if name not in left_out})


def leaves_out_fractions(node: exp.Expr, type_of: TypeOf) -> bool:
    """Whether this is a cast of a column to a type with fewer digits after the point: 0.001 and 0.002 are both 0.00."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if not isinstance(node, exp.Cast) or not isinstance(node.this.unnest(), exp.Column):
        return False
    digits = [each.name for each in node.to.expressions]  # precision and scale of a decimal
    scale = int(digits[1]) if len(digits) > 1 and digits[1].isdecimal() else 0
    kind = type_of(node.this.unnest())
    is_shorter = kind.scale > scale if isinstance(kind, Decimal) else kind in FRACTIONS
    return is_shorter and node.to.this.name in EXACT_TYPES


def shows_local_hours(node: exp.Expr, kind: ColumnType | None, column: Column) -> bool:
    """Whether this is the text of a time in the session's zone, with hours, without the offset from UTC: where clocks
    are set back, two times have the same. The type and the column are those of what it is made from."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if isinstance(node, exp.TimeToStr | exp.UnixToStr):
        return unit_left(node) not in {"day", COARSE} and not shows_offset(node)
    is_window = bool(column.parts) and all(map(WINDOW_PART.fullmatch, column.parts))
    is_text = isinstance(node, exp.Cast) and node.to.this.name in TEXT_TYPES
    return is_text and (is_window or kind == Primitive("TIMESTAMP"))


def equated(condition: exp.Expr) -> list[list[exp.Column]]:
    """The pairs of columns that are equal wherever the condition holds."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    terms = [each for each in terms_of(condition) if isinstance(each, exp.EQ)]
    pairs = [[side for side in (each.this, each.expression) if isinstance(side, exp.Column)] for each in terms]
    return [each for each in pairs if len(each) == 2]


def alias_of(node: exp.Expr) -> str:
    return str(node.alias_or_name).lower()


def tables_in(node: exp.Expr) -> list[exp.Expr]:
    """The tables of a part of FROM, also those in parentheses without an alias, each without its joins."""
    found = tables_in(node.this) if has_parentheses(node) and not node.alias else [without_joins(node)]
    return found + [table for each in node.args.get("joins") or () for table in tables_in(each.this)]


def without_joins(node: exp.Expr) -> exp.Expr:
    if not node.args.get("joins"):
        return node
    copied: exp.Expr = node.copy()
    copied.set("joins", None)
    return copied


def types_of(select: exp.Expr | None, tables: Tables) -> TypeOf:
    """The types of the columns of a SELECT, whose tables may be those of the WITH clauses around it."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if not isinstance(select, exp.Select):
        return lambda _column: None
    above: list[exp.Expr] = [select]
    while above[-1].parent is not None:
        above.append(above[-1].parent)
    for each in reversed(above):
        tables = with_ctes(each, tables)
    types = scope_of(with_plain_tables(select), tables)
    return lambda column: type_of(column, types, None)


def with_plain_tables(select: exp.Select) -> exp.Select:
    """A SELECT whose FROM has the tables of this one without parentheses, to look up their columns."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    clause = argument(select, "from")
    tables = [] if clause is None else tables_in(clause.this)
    tables += [table for each in select.args.get("joins") or () for table in tables_in(each.this)]
    made = exp.Select(laterals=[each.copy() for each in select.args.get("laterals") or ()])
    made.set("from_", exp.From(this=tables[0].copy()) if tables else None)
    made.set("joins", [exp.Join(this=each.copy()) for each in tables[1:]])
    return made
