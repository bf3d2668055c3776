"""The columns of a query's result, as far as they are certain without Spark, and names that no table has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.column_types import Array, Column, ColumnType, Primitive, Struct
from odradek.pipelines.definition.ddl import DdlError, parse_ddl
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.sql.columns import Columns
from odradek.pipelines.sql.text import LITERAL_FUNCTIONS, WINDOWS, Span, exp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.pipelines.sql.query import Item, Lateral, Query, Reference

BIGINT, BOOLEAN, INT, STRING = (Primitive(name) for name in ("BIGINT", "BOOLEAN", "INT", "STRING"))
INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")  # each wider than those before
FLOATS: frozenset[ColumnType | None] = frozenset((Primitive("FLOAT"), Primitive("DOUBLE")))
NUMBERS: frozenset[ColumnType | None] = FLOATS | {Primitive(name) for name in INTEGERS}
WIDTHS = (*INTEGERS, "FLOAT", "DOUBLE")
CASTS = frozenset(("boolean", "binary", "date", "double", "float", "string", "timestamp", *map(str.lower, INTEGERS)))
CHOICES = frozenset(("coalesce", "greatest", "ifnull", "least", "nvl"))  # of values of one type
Named = list[tuple[str, ColumnType | None]]


@dataclass(frozen=True, slots=True)
class Finding:
    """A name in a query that stands for nothing."""

    message: str
    span: Span
    hint: str


def result_columns(query: Query) -> Columns | None:
    """The columns of the result; None where Spark makes a name or a star is not known."""
    found = _named(query)
    return None if found is None else Columns(dict(found))


def unknown_names(query: Query) -> list[Finding]:
    """The columns that no table has, where the columns of all tables are known."""
    if any(each is None for each in query.columns) or not all(each.columns for each in query.laterals):
        return []
    return [found for each in query.references() if (found := _unknown(query, each)) is not None]


def _named(query: Query) -> Named | None:
    made: Named = []
    for item in query.items:
        if item.star_of is not None:
            columns = _of_star(query, item)
            if columns is None:
                return None
            excepted = {name.lower() for name in item.excepted}
            made += [(name, kind) for name, kind in columns if name.lower() not in excepted]
        elif not item.names:
            return None
        else:
            kind = certain_type(query, item.tree) if item.name else None
            made += [(name, kind) for name in item.names]
    return made


def _of_star(query: Query, item: Item) -> Named | None:
    """The columns that a star stands for. Those of USING come first, and once."""
    made: Named = []
    owner = (item.star_of or "").lower()
    for read, columns in zip(query.tables, query.columns, strict=True):
        if owner == read.alias.lower():
            return None if columns is None else list(columns.types.items())
        if columns is None:
            return None
        if read.join not in {"semi", "anti"}:
            merged = [name.lower() for name in read.using]
            made = [
                *(each for name in merged for each in made if each[0].lower() == name),
                *(each for each in (*made, *columns.types.items()) if each[0].lower() not in merged),
            ]
    for view in query.laterals:
        if owner == view.alias.lower():
            made = []
        made += [(name, None) for name in view.columns]
        if not view.columns or owner == view.alias.lower():
            return made if view.columns else None
    return _of_struct(query, item) if owner else made


def _of_struct(query: Query, item: Item) -> Named | None:
    """The fields of the struct before a star: a column, a field of one, or the window of GROUP BY."""
    names = (item.star_of or "").split(".")
    kinds = [_window_type(query)] if names[0].lower() in WINDOWS else []
    for table, columns in zip(query.tables, query.columns, strict=True):
        if columns is not None:
            path = names[1:] if names[0].lower() == table.alias.lower() else names
            kinds.append(_field(columns.type_of(path[0]), *path[1:]))
    found = [each for each in kinds if isinstance(each, Struct)]
    return [(each.name, each.type) for each in found[0].fields] if found else None


def certain_type(query: Query, tree: exp.Expr) -> ColumnType | None:
    """The type of an expression; None if it is not certain."""
    tree = tree.unnest()
    call = str(tree.this).lower() if isinstance(tree, exp.Anonymous) else ""
    if isinstance(tree, exp.Column):
        found = query.references(query.span(tree))
        return _type_of(query, found[0]) if found else None
    if isinstance(tree, exp.Cast):
        return _ddl_type(tree.to.sql("spark"))
    if isinstance(tree, exp.Dot):
        return _field(certain_type(query, tree.this), tree.name)
    if isinstance(tree, exp.Literal):
        is_int = not tree.is_string and tree.name.isdigit()
        return STRING if tree.is_string else INT if is_int and int(tree.name) < 1 << 31 else None
    if isinstance(tree, (exp.Add, exp.Sub, exp.Mul)):
        kinds = {certain_type(query, each) for each in (tree.this, tree.expression)}
        return _widest(kinds) if kinds <= NUMBERS else None
    if isinstance(tree, exp.Neg):
        return certain_type(query, tree.this)
    if call in WINDOWS:
        return _window_type(query)
    if call == "explode" and tree.expressions:
        kind = certain_type(query, tree.expressions[0])
        return kind.element if isinstance(kind, Array) else None
    if isinstance(tree, (exp.Predicate, exp.Connector, exp.Not, exp.Boolean)):
        return BOOLEAN
    choices = _choices(tree, call)
    return _common_type(query, choices) if choices else BIGINT if call == "count" else type_of_name(call)


def type_of_name(call: str) -> ColumnType | None:
    """The type of a call of the function that has the name of the type, such as `int(x)`."""
    return Primitive(call.upper()) if call in CASTS else None


def _widest(kinds: set[ColumnType | None]) -> ColumnType | None:
    """The type that Spark gives to a choice or a sum of values of these types, if it is certain."""
    if len(kinds) == 1:
        return kinds.pop()
    if not kinds <= NUMBERS:
        return None
    names = {each.name for each in kinds if isinstance(each, Primitive)}
    widest = max(names, key=WIDTHS.index, default="FLOAT")
    return None if widest == "FLOAT" else Primitive(widest)  # with an INT it would be a DOUBLE


def _choices(tree: exp.Expr, call: str) -> Sequence[exp.Expr]:
    """The expressions of which a CASE, an IF or the like has the value of one."""
    if isinstance(tree, exp.Case):
        default = tree.args.get("default")
        return [*(each.args["true"] for each in tree.args["ifs"]), *([] if default is None else [default])]
    values: Sequence[exp.Expr] = tree.expressions if call in {"if", *CHOICES} else ()
    return values[1:] if call == "if" else values


def _common_type(query: Query, trees: Sequence[exp.Expr]) -> ColumnType | None:
    """The type of a value that is one of these, or null."""
    return _widest({certain_type(query, each) for each in trees if not isinstance(each, exp.Null)} or {None})


def _type_of_made(query: Query, view: Lateral, name: str) -> ColumnType | None:
    """The type of a column of a LATERAL VIEW."""
    values = view.tree.expressions
    names = [each.lower() for each in view.columns]
    if view.tree.name.lower() != "stack":
        return certain_type(query, view.tree) if len(names) == 1 else None
    return _common_type(query, values[1 + names.index(name.lower()) :: len(names)])


def _ddl_type(text: str) -> ColumnType | None:
    try:
        return parse_ddl(f"c {text}")[0].type
    except DdlError:
        return None


def _type_of(query: Query, reference: Reference) -> ColumnType | None:
    name, *fields = reference.parts
    if reference.item is not None:
        return _field(certain_type(query, reference.item.tree), *fields)
    if reference.table == "window":
        return _field(_window_type(query), *(reference.parts if name.lower() not in WINDOWS else fields))
    view = next((each for each in query.laterals if each.alias == reference.table), None)
    if view is not None and name in view.columns:
        return _field(_type_of_made(query, view, name), *fields)
    tables = zip(query.tables, query.columns, strict=True)
    columns = next((columns for table, columns in tables if table.alias == reference.table), None)
    return None if columns is None else _field(columns.type_of(name), *fields)


def _window_type(query: Query) -> ColumnType | None:
    """A struct of the start and the end of the window of GROUP BY, in the type of its time column."""
    if query.window is None or query.window.time is None:
        return None
    time = _type_of(query, query.references(query.window.span)[0])
    time = time.fields[-1].type if isinstance(time, Struct) else time  # of a window of windows
    return None if time is None else Struct((Column("start", time), Column("end", time)))


def _field(kind: ColumnType | None, *names: str) -> ColumnType | None:
    for name in names:
        fields = kind.fields if isinstance(kind, Struct) else ()
        kind = next((each.type for each in fields if each.name.lower() == name.lower()), None)
    return kind


def _unknown(query: Query, reference: Reference) -> Finding | None:
    name, *fields = reference.parts
    known = {table.alias: columns for table, columns in zip(query.tables, query.columns, strict=True) if columns}
    if reference.item is not None or name == "*" or reference.table == "window":
        return None
    if reference.table is None:
        if not fields and name.lower() in LITERAL_FUNCTIONS:
            return None
        of_table = next((columns for alias, columns in known.items() if fields and alias.lower() == name.lower()), None)
        names = of_table.names if of_table else [each for columns in known.values() for each in columns.names]
        return _no("column", fields[0] if of_table else name, reference, names)
    columns = known.get(reference.table)
    kind = None if columns is None else columns.type_of(name)
    for field in fields:
        if isinstance(kind, Struct) and _field(kind, field) is None and field != "*":
            return _no("field", field, reference, [each.name for each in kind.fields])
        kind = _field(kind, field)
    return None


def _no(what: str, name: str, reference: Reference, known: Sequence[str]) -> Finding:
    return Finding(f"there is no {what} '{name}'", reference.span, suggestion(name, known))
