"""Translates expressions of a query to SQLAlchemy, as far as databases evaluate them as Spark does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from odradek.pipelines.definition.sql_written import is_star, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp

TIME = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?\Z")
DATE = re.compile(r"\d{4}-\d\d-\d\d\Z")
EXACT = 2**53  # integers up to this are exact as DOUBLE
LARGEST = 2**63


class NotDirect(Exception):
    """The query needs Spark; the message is the reason."""


def kind_of(column: Any) -> str:
    """The kind of a column's values; raises `NotDirect` for types that are read in other ways."""
    kind = column.type
    simple: tuple[tuple[Any, str], ...] = (
        (sa.Boolean, "boolean"), (sa.Integer, "integer"), (sa.Double, "double"), (sa.DateTime, "timestamp"),
        (sa.Date, "date"), (sa.Text, "text"),
    )  # fmt: skip
    for known, name in simple:
        if isinstance(kind, known):
            return name
    if isinstance(kind, sa.String) and type(kind) in {sa.String, sa.VARCHAR}:
        return "text"
    raise NotDirect(f"the column '{column.name}' is {kind}")


class Columns:
    """The columns of a table by name, without regard to case; `used` has those whose values are compared."""

    def __init__(self, table: sa.Table, dialect: str) -> None:
        self.table = table
        self.dialect = dialect
        self.used: set[str] = set()
        self._alias = table.name.lower()
        self._by_name: dict[str, Any] = {}
        for column in table.columns:
            if column.name.lower() in self._by_name:
                raise NotDirect(f"two columns are named '{column.name}'")
            self._by_name[column.name.lower()] = column

    @property
    def names(self) -> list[str]:
        return list(self._by_name)

    def name_table(self, origin: exp.Expr | None) -> None:
        from sqlglot import exp  # noqa: PLC0415 - parsed already, so imported already

        table = None if origin is None else origin.this
        if not isinstance(table, exp.Table) or any(
            value for key, value in table.args.items() if key not in {"this", "alias"}
        ):
            raise NotDirect("it does not read one table")
        if table.args.get("alias") is not None and table.args["alias"].args.get("columns"):
            raise NotDirect("it renames the columns of the table")
        self._alias = table.alias_or_name.lower()

    def name_of(self, node: exp.Expr) -> str:
        """The lower-case name of a column of this table."""
        parts: list[str] = [part.name.lower() for part in node.parts]  # type: ignore[attr-defined]  # `parts` is a property that sqlglot leaves untyped
        if len(parts) == 2 and parts[0] == self._alias:
            parts = parts[1:]
        if len(parts) != 1 or parts[0] not in self._by_name:
            raise NotDirect(f"'{'.'.join(parts)}' is not a column of the table")
        return parts[0]

    def column(self, name: str) -> Any:
        return self._by_name[name]

    def use(self, name: str) -> None:
        kind_of(self._by_name[name])
        self.used.add(name)

    def comparable(self, name: str) -> Any:
        """The column for comparisons; text is compared by its bytes, as in Spark."""
        self.use(name)
        column = self._by_name[name]
        is_text = kind_of(column) == "text"
        return sa.collate(column, "C") if is_text and self.dialect == "postgresql" else column


@dataclass(frozen=True, slots=True)
class Item:
    """A column of the result."""

    name: str
    value: Any
    column: str | None  # the column that it is, if it is one
    is_aggregate: bool = False


def projection(node: exp.Expr, columns: Columns) -> Iterator[Item]:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if is_star(node):
        if not isinstance(node, exp.Star) or any(node.args.values()):
            raise NotDirect("it has a star of another form than *")
        for name in columns.names:
            columns.use(name)
            yield Item(columns.column(name).name, columns.column(name), name)
        return
    inner = node.this if isinstance(node, exp.Alias) else node
    if isinstance(inner, exp.Column):
        name = columns.name_of(inner)
        columns.use(name)
        shown = node.alias if isinstance(node, exp.Alias) else inner.name
        yield Item(shown, columns.column(name), name)
    elif isinstance(inner, exp.Anonymous):
        yield aggregate(node, inner, columns)
    else:
        raise NotDirect("it computes an expression")


def aggregate(node: exp.Expr, call: exp.Expr, columns: Columns) -> Item:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    name, arguments = name_of(call), call.expressions
    if name not in {"count", "min", "max", "sum"} or len(arguments) != 1:
        raise NotDirect(f"it calls {name}")
    (argument,) = arguments
    if isinstance(argument, exp.Star) and name == "count" and not any(argument.args.values()):
        value: Any = sa.func.count()
        shown = "count(1)"
    elif isinstance(argument, exp.Column) and not is_star(argument):
        column = columns.name_of(argument)
        kind = kind_of(columns.column(column))
        if (name == "sum" and kind != "integer") or (name in {"min", "max"} and kind == "boolean"):
            raise NotDirect(f"it computes {name} of {kind}")
        value = getattr(sa.func, name)(columns.comparable(column))
        if name == "sum":
            value = sa.cast(value, sa.BigInteger)
        shown = f"{name}({argument.name})"
    else:
        raise NotDirect(f"it calls {name} of an expression")
    return Item(node.alias if isinstance(node, exp.Alias) else shown, value, None, is_aggregate=True)


def sort_key(node: exp.Expr, columns: Columns, aliases: set[str]) -> Any:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if not isinstance(node, exp.Ordered) or not isinstance(node.this, exp.Column) or node.this.name.lower() in aliases:
        raise NotDirect("it sorts by an expression")
    column = columns.comparable(columns.name_of(node.this))
    sorted_by = column.desc() if node.args.get("desc") else column.asc()
    return sorted_by.nulls_first() if node.args.get("nulls_first") else sorted_by.nulls_last()


def condition(node: exp.Expr, columns: Columns) -> Any:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if isinstance(node, exp.Paren):
        return condition(node.this, columns)
    if isinstance(node, exp.And):
        return sa.and_(condition(node.this, columns), condition(node.expression, columns))
    if isinstance(node, exp.Or):
        return sa.or_(condition(node.this, columns), condition(node.expression, columns))
    if isinstance(node, exp.Not):
        return sa.not_(condition(node.this, columns))
    if isinstance(node, exp.Is):
        return is_null(node, columns)
    if isinstance(node, exp.Column):
        return truth(node, columns)
    if isinstance(node, exp.Between):
        return sa.and_(
            compared(exp.GTE, node.this, node.args["low"], columns),
            compared(exp.LTE, node.this, node.args["high"], columns),
        )
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        return sa.or_(*(compared(exp.EQ, node.this, each, columns) for each in node.expressions))
    if type(node) in {exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE}:
        return compared(type(node), node.this, node.expression, columns)
    raise NotDirect("its WHERE has an expression that databases may evaluate in another way")


def is_null(node: exp.Expr, columns: Columns) -> Any:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if not isinstance(node.this, exp.Column) or not isinstance(node.expression, exp.Null):
        raise NotDirect("it has IS of another form than IS NULL")
    name = columns.name_of(node.this)
    columns.use(name)
    return columns.column(name).is_(None)


def truth(node: exp.Expr, columns: Columns) -> Any:
    name = columns.name_of(node)
    if kind_of(columns.column(name)) != "boolean":
        raise NotDirect("its WHERE is not a BOOLEAN")
    columns.use(name)
    return columns.column(name) == sa.true()


def compared(operator: Any, left: exp.Expr, right: exp.Expr, columns: Columns) -> Any:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    flipped = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}
    if not isinstance(left, exp.Column):
        left, right, operator = right, left, flipped.get(operator, operator)
    if not isinstance(left, exp.Column):
        raise NotDirect("it compares without a column")
    name = columns.name_of(left)
    kind, value = kind_of(columns.column(name)), columns.comparable(name)
    if isinstance(right, exp.Column):
        other = columns.name_of(right)
        if kind_of(columns.column(other)) != kind:
            raise NotDirect("it compares columns of different types")
        against = columns.comparable(other)
    else:
        against = literal(right, kind, columns.column(name))
    operators = {
        exp.EQ: value.__eq__, exp.NEQ: value.__ne__, exp.GT: value.__gt__, exp.GTE: value.__ge__,
        exp.LT: value.__lt__, exp.LTE: value.__le__,
    }  # fmt: skip
    return operators[operator](against)


def literal(node: exp.Expr, kind: str, column: Any) -> Any:
    """A constant as a value of the column's kind."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if isinstance(node, exp.Boolean) and kind == "boolean":
        return sa.literal(bool(node.this), sa.Boolean)
    is_negative = isinstance(node, exp.Neg)
    inner = node.this if is_negative else node
    if isinstance(inner, exp.Literal):
        text = str(inner.this)
        if not inner.is_string and kind == "integer" and text.isdigit() and int(text) < LARGEST:
            return -int(text) if is_negative else int(text)
        if not inner.is_string and kind == "double" and re.fullmatch(r"\d{1,15}(\.\d{1,15})?", text):
            return -float(text) if is_negative else float(text)
        if inner.is_string and not is_negative and kind == "text" and "\0" not in text:
            return text
        if inner.is_string and not is_negative and kind == "date" and DATE.match(text):
            return parsed(date.fromisoformat, text)
        if inner.is_string and not is_negative and kind == "timestamp" and TIME.match(text):
            moment = parsed(datetime.fromisoformat, text)
            return moment.replace(tzinfo=UTC) if column.type.timezone else moment
    raise NotDirect(f"it compares the column '{column.name}' with another kind of value")


def parsed(read: Any, text: str) -> Any:
    try:
        return read(text)
    except ValueError:
        raise NotDirect(f"'{text}' is not a date") from None
