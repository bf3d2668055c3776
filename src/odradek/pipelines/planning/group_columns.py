"""What is known of the columns of rows that change: which identify a group, which only grow, which change.

The rows of an aggregation change with every record of their group. `Rows` describes the rows of a source, a step or a
part of a query; the functions of this file derive the description of a result from those of its inputs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.planning.queries import children, is_aggregate, window_calls
from odradek.pipelines.planning.window_parts import (
    called_window_part,
    is_number_of_seconds,
    is_ordered_format,
    step_of,
    stepped_part,
    told_apart,
    unit_left,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from sqlglot import exp

COUNTS = ("Count", "CountIf")
GROWING_AGGREGATES = ("Max", *COUNTS)
# Functions whose results differ if their arguments do, apart from rare cases: those that keys are made of.
DISTINGUISHING = (
    "Concat", "ConcatWs", "DPipe", "Cast", "TryCast", "TimeStrToTime", "UnixSeconds", "UnixMillis", "UnixMicros",
    "StrToUnix", "MD5", "MD5Digest", "SHA", "SHA2", "Struct", "PropertyEQ", "JSONFormat", "Dot",
)  # fmt: skip
DISTINGUISHING_NAMES = frozenset(("xxhash64", "hash", "named_struct", "format_string", "printf", "window_time"))
# Functions that do not fall while their arguments grow. A number that is cast from text may: '9' is more than '10'.
MONOTONE = (
    "Greatest", "UnixSeconds", "UnixMillis", "UnixMicros", "TimestampTrunc", "DateTrunc",
)  # fmt: skip
TIME_TYPES = frozenset(("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"))
COUNT_TYPES = frozenset(("INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"))  # of casts that keep the order of counts
UNHELD = "a row"  # the identity of a row that no column has


class Kind(IntEnum):
    """How the value of a column changes while its row is updated."""

    FIXED = 0
    GROWING = 1
    CHANGING = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and the parts of its row's identity that its value determines; `step` is the unit of dates and
    truncated times."""

    kind: Kind = Kind.FIXED
    parts: frozenset[str] = frozenset()
    step: str | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns of rows by their lower-case names; `parts` are what identifies a row. The columns are in their order
    unless there are others, or `is_ordered` is False."""

    columns: Mapping[str, Column] = field(default_factory=dict)
    parts: frozenset[str] = frozenset()
    default: Column | None = None  # of other columns; None if there are none
    is_known: bool = True  # otherwise nothing is known of what identifies a row
    is_ordered: bool = True

    def column(self, name: str) -> Column:
        return self.columns.get(name.lower(), self.default or Column())

    @property
    def is_fixed(self) -> bool:
        """Whether no column of a row changes."""
        return self.is_known and all(each.kind is Kind.FIXED for each in (*self.columns.values(), self.column("")))

    @property
    def is_static(self) -> bool:
        return self.is_fixed and not self.parts


STATIC = Rows(default=Column())
RECORDS = Rows(parts=frozenset((UNHELD,)), default=Column())
UNKNOWN = Rows(default=Column(Kind.CHANGING), is_known=False)


def identifying(name: str, step: str | None) -> Column:
    """A column that is a part of its row's identity."""
    return Column(Kind.FIXED, frozenset((stepped_part(name, step),)), step)


def grouped(by: Mapping[str, str | None], aggregates: Mapping[str, Kind], window: str | None) -> Rows:
    """The rows of an aggregation by columns with these steps; each end of a window determines the window, whose part is
    given."""
    ends = () if window is None else ("window_start", "window_end")
    columns = {name: Column(Kind.FIXED, frozenset((window or "",))) for name in ends}
    columns |= {name.lower(): identifying(name.lower(), step) for name, step in by.items()}
    parts = frozenset().union(*(each.parts for each in columns.values()))
    return Rows({**columns, **{name.lower(): Column(kind) for name, kind in aggregates.items()}}, parts)


def distinct(rows: Rows) -> Rows:
    """The rows without duplicates, which all their columns identify."""
    if rows.default is not None or not rows.is_known:
        return replace(rows, parts=frozenset((UNHELD,)))
    parts = {name: identifying(name, each.step).parts for name, each in rows.columns.items()}
    columns = {name: replace(each, parts=parts[name]) for name, each in rows.columns.items()}
    return replace(rows, columns=columns, parts=frozenset().union(*parts.values()))


def joined(left: Rows, right: Rows, *, changes: bool) -> Rows:
    """The rows of a join; with `changes` the right side of a row may become another one. The order of their columns
    depends on the kind of the join."""
    other = changing(right) if changes else right
    defaults = [each.default for each in (left, other) if each.default is not None]
    default = Column(max(each.kind for each in defaults)) if defaults else None
    columns = {**other.columns, **left.columns}
    return Rows(columns, left.parts | right.parts, default, left.is_known and right.is_known, is_ordered=False)


def changing(rows: Rows) -> Rows:
    columns = dict.fromkeys(rows.columns, Column(Kind.CHANGING))
    return replace(rows, columns=columns, default=None if rows.default is None else Column(Kind.CHANGING))


def settled(rows: Rows) -> Rows:
    """The rows of final groups, which do not change."""
    columns = {name: replace(each, kind=Kind.FIXED) for name, each in rows.columns.items()}
    return replace(rows, columns=columns, default=None if rows.default is None else Column())


def holding(rows: Rows, name: str, parts: frozenset[str]) -> Rows:
    """The rows with a column that also determines these parts."""
    column = rows.column(name)
    return replace(rows, columns={**rows.columns, name: replace(column, parts=column.parts | parts)})


def numbered(rows: Rows, side: int) -> Rows:
    """The rows of a side of a join: groups of its two sides are not the same, whatever the names of their columns."""
    columns = {name: replace(each, parts=numbered_parts(each.parts, side)) for name, each in rows.columns.items()}
    return replace(rows, columns=columns, parts=numbered_parts(rows.parts, side))


def numbered_parts(parts: frozenset[str], side: int) -> frozenset[str]:
    return frozenset(f"{side} {each}" for each in parts)


def united(left: Rows, right: Rows, tells_apart: Callable[[int], bool]) -> Rows:
    """The rows of a UNION, whose columns are those of the left side by position; `tells_apart` says whether a column
    shows from which side its row is."""
    is_open = left.default is not None or right.default is not None or len(left.columns) != len(right.columns)
    if is_open or not (left.is_known and right.is_known):
        is_fixed = left.is_fixed and right.is_fixed
        return UNKNOWN if not is_fixed else RECORDS if left.parts or right.parts else STATIC
    columns = {}
    for at, ((name, one), other) in enumerate(zip(left.columns.items(), right.columns.values(), strict=True)):
        parts = numbered_parts(one.parts, 1) | numbered_parts(other.parts, 2)
        columns[name] = Column(max(one.kind, other.kind), parts | ({"side"} if tells_apart(at) else set()))
    all_parts = numbered_parts(left.parts, 1) | numbered_parts(right.parts, 2) | {"side"}
    return Rows(columns, all_parts, is_ordered=left.is_ordered and right.is_ordered)


def column_of(node: exp.Expr, resolve: Callable[[exp.Expr], Column | None]) -> Column:
    """The column of an expression; `resolve` knows its leaves."""
    found = resolve(node)
    if found is not None:
        return found
    if is_aggregate(node):
        return Column(Kind.GROWING if type(node).__name__ in GROWING_AGGREGATES else Kind.CHANGING)
    if type(node).__name__ in {"Alias", "Paren", "Filter"}:
        return column_of(node.this, resolve)
    inner = [column_of(each, resolve) for value in node.args.values() for each in children(value)]
    kind = max((each.kind for each in inner), default=Kind.FIXED)
    kind = Kind.CHANGING if kind and not is_monotone(node) else kind
    held = frozenset().union(*(each.parts for each in inner))
    unit = "second" if is_number_of_seconds(node, held) else unit_left(node)
    if unit is not None:
        return Column(kind, told_apart(held, unit), step_of(node))
    return Column(kind, held if distinguishes(node) else frozenset())


def is_monotone(node: exp.Expr) -> bool:
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    if isinstance(node, exp.Cast):
        is_number = type(node.this).__name__ in COUNTS and node.to.this.name in COUNT_TYPES
        return is_number or node.to.this.name in TIME_TYPES
    if isinstance(node, exp.StrToUnix | exp.TsOrDsToDate):
        written = node.args.get("format")
        return written is None or is_ordered_format(written.name)
    return type(node).__name__ in MONOTONE


def distinguishes(node: exp.Expr) -> bool:
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    if isinstance(node, exp.Coalesce):
        return not any(each.find(exp.Column) for each in node.expressions)
    if isinstance(node, exp.Cast) and node.to.this.name == "BOOLEAN":
        return False
    is_named = isinstance(node, exp.Anonymous) and node.name.lower() in DISTINGUISHING_NAMES
    return is_named or type(node).__name__ in DISTINGUISHING


def group_expressions(select: exp.Expr) -> list[exp.Expr]:
    """The expressions that a SELECT groups by, with ordinals, aliases and ALL replaced by what they stand for."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    group = select.args.get("group")
    if group is None:
        return []
    plain = [each.unalias() for each in select.expressions if not any(map(is_aggregate, each.walk()))]
    found: list[exp.Expr] = list(plain) if group.args.get("all") else []
    for each in group.expressions:
        if isinstance(each, exp.Rollup | exp.Cube | exp.GroupingSets):
            found += each.find_all(exp.Column)
        else:
            found += resolved(each, select)
    for key in ("rollup", "cube", "grouping_sets"):
        found += [column for each in group.args.get(key) or () for column in each.find_all(exp.Column)]
    return found


def resolved(node: exp.Expr, select: exp.Expr) -> list[exp.Expr]:
    """What an expression of GROUP BY stands for: an ordinal or an alias stands for a selected expression. An ordinal
    that does not exist stands for none."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if isinstance(node, exp.Literal) and not node.is_string:
        at = int(node.name) - 1 if node.name.isdigit() else -1
        return [select.expressions[at].unalias()] if 0 <= at < len(select.expressions) else []
    if isinstance(node, exp.Column) and not node.table:
        named = {each.alias.lower(): each.this for each in select.expressions if is_new_name(each, select)}
        return [named.get(node.name.lower(), node)]
    return [node]


def is_new_name(node: exp.Expr, select: exp.Expr) -> bool:
    """Whether GROUP BY can use this as the alias of an expression: Spark prefers a column of the input, of which the
    expression may be a field, and groups by no aggregate."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if not isinstance(node, exp.Alias) or any(map(is_aggregate, node.walk())):
        return False
    tables = {each.name.lower() for each in select.find_all(exp.Table, exp.TableAlias)}
    paths = ([part.name.lower() for part in each.parts] for each in node.this.find_all(exp.Column))
    names = {path[1] if len(path) > 1 and path[0] in tables else path[0] for path in paths}
    return node.alias.lower() not in names


def part_finder(expressions: Sequence[exp.Expr], tables: Collection[str]) -> Callable[[exp.Expr], str | None]:
    """Finds the part of a group's identity that an expression is, among those that a SELECT over these tables groups
    by. Tables are left out of the names of parts, unless columns of several tables would then have the same."""
    whole = {group_part(each, ()): group_part(each, tables) for each in expressions}
    uses = Counter(whole.values())
    parts = {text: part if uses[part] == 1 or len(tables) == 1 else text for text, part in whole.items()}

    def found(node: exp.Expr) -> str | None:
        text, part = group_part(node, ()), group_part(node, tables)
        return parts.get(text, part if part in parts.values() else None)

    return found


def group_part(node: exp.Expr, tables: Collection[str]) -> str:
    """The text of an expression, in which columns are without the names of these tables, and names in lower case."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    def plain(each: exp.Expr) -> exp.Expr:
        if isinstance(each, exp.Column):
            names = [exp.to_identifier(part.name.lower()) for part in each.parts]
            path = names[1:] if len(names) > 1 and names[0].name in tables else names
            return exp.Dot.build(path) if len(path) > 1 else exp.column(path[0])
        return exp.to_identifier(each.name.lower()) if isinstance(each, exp.Identifier) else each

    calls = window_calls(node)
    if calls:
        return called_window_part(calls[0])
    return str(node.transform(plain).sql(dialect="spark", normalize_functions="lower"))
