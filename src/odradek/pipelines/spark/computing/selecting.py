"""A row-by-row SELECT as columns over the rows of its input.

The text is the user's own, in which the names of columns are replaced by the paths of the columns that hold them. Spark
analyses the unchanged query as well: if its columns have other names or types, the query cannot be computed so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.spark.computing.row_errors import INDEX, IT, refused_rows, try_rows
from odradek.pipelines.spark.computing.rows import (
    ALWAYS,
    ROW,
    NotCompilable,
    Rows,
    struct_of,
    text_of,
)
from odradek.pipelines.spark.frames import RECORD_NAMES, quoted
from odradek.pipelines.spark.sessions.failures import plain_message
from odradek.pipelines.sql.columns import Columns
from odradek.pipelines.sql.query import Query, is_within
from odradek.pipelines.sql.row_errors import may_fail
from odradek.pipelines.sql.shapes import generators_of, has_plain_generators
from odradek.pipelines.sql.splicing import with_paths, with_tables
from odradek.pipelines.sql.text import LITERAL_FUNCTIONS, exp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.spark.computing.rows import Frame, Path
    from odradek.pipelines.sql.blocks import Part
    from odradek.pipelines.sql.query import Item, Reference
    from odradek.pipelines.sql.shapes import Generator
    from odradek.pipelines.sql.text import Span

MADE, ELEMENT = "__made", "__element"  # lambda variables: a generated row, and what it is made of
INPUT = "__input"  # the view of the rows of the input


@dataclass(frozen=True, slots=True)
class Selected:
    """The rows of a query, and those of its input of which a value cannot be computed, with the reason."""

    rows: Rows
    refused: tuple[Rows, ...] = ()


@dataclass(frozen=True, slots=True)
class Expressions:
    """The expressions of a query over single rows."""

    query: Query
    rows: Rows
    made: tuple[str, ...] = ()  # the columns of the generator
    made_alias: str | None = None

    def text(self, span: Span) -> str:
        """An expression with paths in place of the names of columns."""
        return with_paths(self.query, span, self._text_of)

    def path(self, reference: Reference) -> Path:
        if reference.table is not None and reference.table == self.made_alias:
            return (MADE, *reference.parts)
        path = (*self.rows.path(reference.parts[0]), *reference.parts[1:])
        lambdas = [each for each in self.query.tree.find_all(exp.Lambda) if path[0].lower() in variables_of(each)]
        if any(is_within(reference.span, self.query.span(each)) for each in lambdas):
            raise NotCompilable(f"the variable {path[0]} of a lambda has the name of a column: rename the variable")
        return path

    def _text_of(self, reference: Reference) -> str | None:
        if reference.table is None:
            if reference.parts[0].lower() in LITERAL_FUNCTIONS:
                return None
            if reference.parts != ("*",):
                raise NotCompilable(f"there is no column {'.'.join(reference.parts)}")
        fields = self.star() if reference.parts == ("*",) else {reference.parts[-1]: self.path(reference)}
        structs = [call for call in self.query.calls if call.name == "struct"]  # it names its fields after columns
        is_named = any(reference.span in call.arguments for call in structs)
        texts = {name: text_of(path) for name, path in fields.items()}
        return ", ".join(f"{path} as {quoted(name)}" if is_named else path for name, path in texts.items())

    def star(self) -> dict[str, Path]:
        return {**self.rows.fields, **{name: (MADE, name) for name in self.made}}


def over_rows(expression: str, rows: Rows) -> str:
    """An expression of the definition with paths in place of the names of columns."""
    query = Query.of_expression(expression, INPUT, lambda _table: columns_of(rows))
    if len(query.items) != 1:
        raise NotCompilable(f"'{expression}' is not one expression")
    return Expressions(query, rows).text(query.items[0].span)


def variables_of(tree: exp.Expr) -> set[str]:
    return {each.name.lower() for each in tree.expressions}


def columns_of(rows: Rows, types: Columns | None = None) -> Columns:
    """The columns of rows, with the types that are known."""
    return Columns({name: None if types is None else types.type_of(name) for name in rows.fields})


def select_rows(
    frame: Frame, name: str, part: Part, known: Mapping[str, Rows], types: Columns | None = None
) -> Selected:
    """The rows of a plain SELECT; `known` has the tables that it may read, by name in lower case, and `types` what the
    plan knows of the columns of the one that it reads."""
    named = {table: columns_of(rows, types) for table, rows in known.items()}
    query = Query(part, lambda table: named.get(table.lower()))
    rows = known.get(query.tables[0].table.lower()) if len(query.tables) == 1 else None
    if rows is None:
        raise NotCompilable(f"'{name}' does not read one table")
    if not has_plain_generators(query):
        raise NotCompilable(f"'{name}' has a generator whose rows are no array of its arguments")
    variables = set[str]().union(*map(variables_of, query.tree.find_all(exp.Lambda)))
    hidden = {each: path for each, path in rows.fields.items() if path[0].lower() in variables}
    copies = {each: (frame.add(f"__{each}", text_of(path)),) for each, path in hidden.items()}
    rows = replace(rows, fields={**rows.fields, **copies})
    expected = _schema_by_spark(frame, query, rows)
    made = _Selecting(frame, name, query, rows, tuple(expected.names)).selected()
    if _described(frame.schema_of(made.rows)) != _described(expected):
        raise NotCompilable(f"'{name}' would have other columns than in Spark")
    return replace(made, rows=replace(made.rows, shows_records=_shows_records(query, rows)))


def _schema_by_spark(frame: Frame, query: Query, rows: Rows) -> T.StructType:
    """The columns that Spark itself gives to the query."""
    session = frame.session
    session.createDataFrame([], frame.schema_of(rows)).createOrReplaceTempView(INPUT)
    written = query.tree.args["from_"].this
    text = with_tables(query.part.text, {".".join(each.name for each in written.parts).lower(): INPUT})
    try:
        return session.sql(text).schema
    except PySparkException as error:
        raise NotCompilable(plain_message(error)) from error


def _described(schema: T.StructType) -> list[tuple[str, str]]:
    """Names and types, without what is nullable."""
    return [(each.name, each.dataType.simpleString()) for each in schema.fields]


def _shows_records(query: Query, rows: Rows) -> bool:
    has_star = any(each.star_of is not None for each in query.items)
    return RECORD_NAMES.issubset(each.name.lower() for each in query.items) or (has_star and rows.shows_records)


class _Selecting:
    """One SELECT over the rows of one table. Expressions that may fail for a row are tried together."""

    def __init__(self, frame: Frame, name: str, query: Query, rows: Rows, names: tuple[str, ...]) -> None:
        if len({each.lower() for each in names}) < len(names):
            raise NotCompilable(f"'{name}' has two columns of one name")
        self._frame, self._name, self._query, self._rows, self._names = frame, name, query, rows, names
        self._generator = next(iter(generators_of(query)), None)
        made, alias = ((), None) if self._generator is None else (self._generator.names, self._generator.alias)
        self._expressions = Expressions(query, rows, made, alias)
        self._where = None if query.where is None else f"coalesce({self._expressions.text(query.where)}, false)"
        self._may_where_fail = self._where is not None and may_fail(query, query.tree.args["where"].this)

    def selected(self) -> Selected:
        if self._generator is not None:
            return self._generated(self._generator)
        return self._of_array() if self._rows.is_many else self._of_single()

    def _of_single(self) -> Selected:
        """Uses the columns of the input in place; other expressions become new columns."""
        if self._where is not None and not self._may_where_fail:
            self._rows = self._rows.narrowed(self._add("__has", self._rows.filtered(self._where)))
        values = self._values()
        risky = {name: f"c{number}" for number, (name, (_, fails)) in enumerate(values.items()) if fails}
        column = None
        rows, condition = self._rows, self._rows.condition
        if risky or self._may_where_fail:
            made = struct_of({"is": ALWAYS, **{field: str(values[name][0]) for name, field in risky.items()}})
            column = self._try(f"if({self._where}, {made}, null)" if self._may_where_fail else made)
            condition = f"{quoted(column)}.{IT} is not null"
            rows = replace(rows, condition=condition)
        fields: dict[str, Path] = {}
        for name, (value, _) in values.items():
            if column is not None and name in risky:
                fields[name] = (column, IT, risky[name])
            else:
                fields[name] = self._path_of(name, value, rows)
        return Selected(Rows(fields, condition), () if column is None else self._refused(column))

    def _path_of(self, name: str, value: str | Path, rows: Rows) -> Path:
        if isinstance(value, str):
            return (self._frame.add(f"__{self._name}.{name}", rows.mapped(value)),)
        return value

    def _of_array(self) -> Selected:
        values = self._values()
        made = struct_of({name: _as_text(value) for name, (value, _) in values.items()})
        if not (self._may_where_fail or any(fails for _, fails in values.values())):
            found = quoted(self._rows.array or "") if self._where is None else self._rows.filtered(self._where)
            return Selected(Rows.several(self._add("__rows", f"transform({found}, {ROW} -> {made})"), values))
        column = self._try(made if self._where is None else f"if({self._where}, {made}, null)")
        kept = f"filter({quoted(column)}, {ROW} -> {ROW}.{IT} is not null)"
        several = self._add("__rows", f"transform({kept}, {ROW} -> {ROW}.{IT})")
        return Selected(Rows.several(several, values), self._refused(column))

    def _generated(self, generator: Generator) -> Selected:
        """If one of the rows that are made of a row cannot be computed, none of them is written."""
        values, where = self._values(), self._where
        made = _rows_of(generator, [self._expressions.text(each) for each in generator.call.arguments])
        found = made if where is None or generator.is_item else f"filter({made}, {MADE} -> {where})"
        several = (
            f"transform({found}, {MADE} -> {struct_of({name: _as_text(value) for name, (value, _) in values.items()})})"
        )
        if where is not None and generator.is_item:
            several = f"if({where}, {several}, null)"
        fails = (
            self._may_where_fail
            or may_fail(self._query, generator.call.tree)
            or any(fails for _, fails in values.values())
        )
        if not fails:
            every = self._rows.mapped(_or_empty(several) if self._rows.is_many else several)
            every = f"flatten({every})" if self._rows.is_many else every
            return Selected(Rows.several(self._add("__rows", every), values))
        column = self._try(several)
        every = f"{quoted(column)}.{IT}"
        if self._rows.is_many:
            computed = f"filter({quoted(column)}, {ROW} -> {ROW} is not null)"
            every = f"flatten(transform({computed}, {ROW} -> {_or_empty(f'{ROW}.{IT}')}))"
        return Selected(Rows.several(self._add("__rows", every), values), self._refused(column))

    def _values(self) -> dict[str, tuple[str | Path, bool]]:
        """The path or the expression of each column, and whether it may fail."""
        found: list[tuple[str | Path, bool]] = []
        paths = {each.span: each for each in self._query.references() if each.table is not None and each.item is None}
        for item in self._query.items:
            if item.star_of is not None:
                found += [(path, False) for path in self._star(item)]
            elif self._generator is not None and item.tree is self._generator.call.tree:
                found += [((MADE, name), False) for name in self._generator.names]
            elif item.span in paths:
                found.append((self._expressions.path(paths[item.span]), False))
            else:
                found.append((self._expressions.text(item.span), may_fail(self._query, item.tree)))
        if len(found) != len(self._names):
            raise NotCompilable(f"'{self._name}' would have other columns than in Spark")
        return dict(zip(self._names, found, strict=True))

    def _star(self, item: Item) -> list[Path]:
        owner, rows = (item.star_of or "").lower(), self._rows
        if not owner:
            fields = self._expressions.star()
        elif owner == self._query.tables[0].alias.lower():
            fields = dict(rows.fields)
        elif self._generator is not None and owner == (self._generator.alias or "").lower():
            fields = {name: (MADE, name) for name in self._generator.names}
        else:
            first, *inner = owner.split(".")
            path = (*rows.path(first), *inner)
            kind = self._frame.type_of(rows, text_of(path))
            fields = {name: (*path, name) for name in kind.names} if isinstance(kind, T.StructType) else {}
        excepted = {each.lower() for each in item.excepted}
        return [path for name, path in fields.items() if name.lower() not in excepted]

    def _add(self, prefix: str, expression: str) -> str:
        return self._frame.add(f"{prefix}_{self._name}", expression)

    def _try(self, value: str) -> str:
        return try_rows(self._frame, self._name, self._rows, value)

    def _refused(self, column: str) -> tuple[Rows, ...]:
        return (refused_rows(self._frame, self._name, self._rows, column),)


def _rows_of(generator: Generator, values: list[str]) -> str:
    """The rows that a generator makes of the row with these arguments."""
    names = generator.names
    if generator.call.name == "stack":
        groups = [values[start : start + len(names)] for start in range(1, len(values), len(names))]
        return f"array({', '.join(struct_of(dict(zip(names, group, strict=True))) for group in groups)})"
    (array,) = values
    if generator.call.name == "posexplode":
        made = struct_of({names[0]: INDEX, names[1]: ELEMENT})
        return f"transform({array}, ({ELEMENT}, {INDEX}) -> {made})"
    if len(names) == 1:
        return f"transform({array}, {ELEMENT} -> {struct_of({names[0]: ELEMENT})})"
    made = struct_of({names[0]: f"{ELEMENT}.key", names[1]: f"{ELEMENT}.value"})
    return f"transform(map_entries({array}), {ELEMENT} -> {made})"


def _as_text(value: str | Path) -> str:
    return value if isinstance(value, str) else text_of(value)


def _or_empty(array: str) -> str:
    return f"coalesce({array}, array())"
