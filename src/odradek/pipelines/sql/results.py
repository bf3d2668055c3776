"""The columns of a query's result, as far as they are certain without Spark, and names that no table has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.pipelines.definition.column_types import Column, ColumnType, Primitive, Struct
from odradek.pipelines.definition.ddl import DdlError, parse_ddl
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.sql.columns import Columns
from odradek.pipelines.sql.text import LITERAL_FUNCTIONS, WINDOWS, Span, exp, tokens_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.pipelines.sql.query import Item, Query, Reference

BIGINT, BOOLEAN, INT, STRING = (Primitive(name) for name in ("BIGINT", "BOOLEAN", "INT", "STRING"))
Named = list[tuple[str, ColumnType | None]]


@dataclass(frozen=True, slots=True)
class Finding:
    """A name in a query that stands for nothing, or for more than one thing."""

    message: str
    span: Span
    hint: str


def result_columns(query: Query) -> Columns | None:
    """The columns of the result; None where Spark makes a name or a star is not known."""
    found = _named(query)
    return None if found is None else Columns(dict(found))


def repeated_names(query: Query) -> list[str]:
    """The names, in lower case, that several columns of the result have; none if they are not known."""
    names = [name.lower() for name, _ in _named(query) or ()]
    return [name for at, name in enumerate(names) if name in names[:at]]


def unknown_names(query: Query) -> list[Finding]:
    """The columns that no table has, and those that several have, where the columns of all tables are known."""
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
            kind = _type(query, item.tree, item.span) if item.name else None
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


def _type(query: Query, tree: exp.Expr, span: Span) -> ColumnType | None:
    """The type of an expression, if it is certain."""
    tree = tree.unnest()
    call = str(tree.this).lower() if isinstance(tree, exp.Anonymous) else ""
    if isinstance(tree, exp.Column):
        return _type_of(query, query.references(span)[0])
    if isinstance(tree, exp.Cast):
        return _ddl_type(tree.to.sql("spark"))
    if isinstance(tree, exp.Dot):
        return _field(_type(query, tree.this, span), tree.name)
    if isinstance(tree, exp.Literal):
        is_int = not tree.is_string and tree.name.isdigit()
        return STRING if tree.is_string else INT if is_int and int(tree.name) < 1 << 31 else None
    if call in WINDOWS:
        return _window_type(query)
    is_condition = isinstance(tree, (exp.Predicate, exp.Connector, exp.Not, exp.Boolean))
    return BOOLEAN if is_condition else BIGINT if call == "count" else None


def _ddl_type(text: str) -> ColumnType | None:
    try:
        return parse_ddl(f"c {text}")[0].type
    except DdlError:
        return None


def _type_of(query: Query, reference: Reference) -> ColumnType | None:
    name, *fields = reference.parts
    if reference.item is not None:
        return _field(_type(query, reference.item.tree, reference.item.span), *fields)
    if reference.table == "window":
        return _field(_window_type(query), *(reference.parts if name.lower() not in WINDOWS else fields))
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
    merged = {each.lower() for table in query.tables for each in table.using}
    own = [each.alias for each in query.tables if each.join not in {"semi", "anti"} and name in known[each.alias]]
    is_bare = len(tokens_of(query.text(reference.span))) == 2 * len(reference.parts) - 1
    if len(own) > 1 and is_bare and name.lower() not in merged:
        return Finding(f"the column '{name}' is in {' and in '.join(own)}", reference.span, f"write {own[0]}.{name}")
    return None


def _no(what: str, name: str, reference: Reference, known: Sequence[str]) -> Finding:
    return Finding(f"there is no {what} '{name}'", reference.span, suggestion(name, known))
