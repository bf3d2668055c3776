"""The rows that a record makes, as columns of one frame next to the record itself.

A table with at most one row per record is represented by one path per field (an existing column or a new one) and a
condition that says whether the row exists. Fields are not packed into structs, which halves the plan and the generated
code of each batch. A table with several rows per record is an array of structs. `mapped` and `filtered` build the
expression for either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.spark.frames import (
    ORIGIN,
    ORIGIN_FIELDS,
    PLACE_FIELDS,
    has_origin,
    literal,
    quoted,
    with_records_shown,
)
from odradek.pipelines.spark.sessions.failures import PipelineError, plain_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    Path = tuple[str, ...]  # a column and nested fields

ROW = "__row"  # the lambda variable for an element of an array
ALWAYS = "true"


class NotCompilable(PipelineError):
    """A table that cannot be computed as columns of one frame, or that would be another table there."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a table that are made of one record."""

    fields: Mapping[str, Path]  # of one row, by name
    condition: str = ALWAYS  # true if the row exists; never null
    array: str | None = None  # the column with the array of rows, if there may be several
    shows_records: bool = False  # whether ends write all columns of the record, which the definition names

    @classmethod
    def several(cls, array: str, names: Iterable[str]) -> Rows:
        return cls({name: (ROW, name) for name in names}, array=array)

    @property
    def is_many(self) -> bool:
        return self.array is not None

    def path(self, name: str) -> Path:
        """The path of a field; names are case-insensitive."""
        found = [path for known, path in self.fields.items() if known.lower() == name.lower()]
        if len(found) != 1:
            raise NotCompilable(f"there is no column {name}, or more than one")
        return found[0]

    def mapped(self, expression: str) -> str:
        """Applies the expression to every row; null or empty if there is no row."""
        if self.array is not None:
            return f"transform({quoted(self.array)}, {ROW} -> {expression})"
        return expression if self.condition == ALWAYS else f"if({self.condition}, {expression}, null)"

    def filtered(self, condition: str) -> str:
        """The rows that meet a condition: a filtered array, or whether the single row exists and meets it."""
        if self.array is not None:
            return f"filter({quoted(self.array)}, {ROW} -> {condition})"
        if condition == ALWAYS:
            return self.condition
        return condition if self.condition == ALWAYS else f"if({self.condition}, {condition}, false)"

    def narrowed(self, column: str) -> Rows:
        """The rows that remain, given the column with the result of `filtered`."""
        return replace(self, array=column) if self.is_many else replace(self, condition=quoted(column))

    def count(self, condition: str = ALWAYS) -> str:
        """An aggregate that counts the rows that meet a condition; without one, all rows."""
        if self.array is None:
            return f"count(if({self.filtered(condition)}, 1, null))"
        found = quoted(self.array) if condition == ALWAYS else self.filtered(condition)
        return f"coalesce(sum(if({found} is null, 0, size({found}))), 0)"  # without ANSI mode the size of null is -1

    def all_hold_or(self, condition: str, otherwise: str) -> str:
        """True if the condition holds for all rows of a record, otherwise the value of `otherwise`."""
        if self.array is not None:
            unmet = f"coalesce(exists({quoted(self.array)}, {ROW} -> not {condition}), false)"
        else:
            unmet = self.filtered(f"not {condition}")
        return f"if({unmet}, {otherwise}, true)"

    def struct(self, names: Iterable[str]) -> str:
        return struct_of({name: text_of(self.path(name)) for name in names})


class Frame:
    """A frame to which the columns of tables and of outputs are added."""

    def __init__(self, frame: DataFrame, origin: Mapping[str, Path] | None = None) -> None:
        """`origin` has the columns with the fields of the origin, if they are not in the column of that name."""
        self._frame = frame
        self._taken = {each.lower() for each in frame.columns}
        self._pending: dict[str, str] = {}  # independent columns, added in one projection
        self._added = 0
        self._origin = {name: (ORIGIN, name) for name in ORIGIN_FIELDS} if origin is None else origin
        self.has_origin = origin is not None or has_origin(frame)

    @property
    def frame(self) -> DataFrame:
        self._settle()
        return self._frame

    @property
    def session(self) -> SparkSession:
        return self._frame.sparkSession

    def add(self, name: str, expression: str) -> str:
        """Adds a column; returns its unique name."""
        self._added += 1
        while f"{name}__{self._added}".lower() in self._taken:  # a column of the user
            self._added += 1
        name = f"{name}__{self._added}"
        if any(quoted(each) in expression for each in self._pending):
            self._settle()
        self._pending[name] = expression
        return name

    def _settle(self) -> None:
        added, self._pending = self._pending, {}
        if not added:
            return
        try:
            self._frame = self._frame.withColumns({name: F.expr(text) for name, text in added.items()})
        except PySparkException as error:
            raise NotCompilable(plain_message(error)) from error

    def type_of(self, rows: Rows, expression: str) -> T.DataType:
        """The type of an expression over single rows."""
        try:
            kind = self.frame.select(F.expr(rows.mapped(expression)).alias("it")).schema["it"].dataType
        except PySparkException as error:
            raise NotCompilable(plain_message(error)) from error
        return kind.elementType if rows.is_many and isinstance(kind, T.ArrayType) else kind

    def schema_of(self, rows: Rows) -> T.StructType:
        """The columns of rows."""
        kind = self.type_of(rows, rows.struct(rows.fields))
        if not isinstance(kind, T.StructType):
            raise NotCompilable("there are no columns")
        return kind

    def origin(self, name: str) -> str:
        """A field of the origin."""
        return text_of(self._origin[name])

    def add_table(self, name: str, rows: Rows) -> TableColumn:
        """Adds a column from which the rows can be read as a separate frame, with the position of their record."""
        fields = {each: text_of(path) for each, path in rows.fields.items()}
        if self.has_origin:
            fields[ORIGIN] = struct_of({each: self.origin(each) for each in PLACE_FIELDS})
        return TableColumn(self.add(name, rows.mapped(struct_of(fields))), rows.is_many, rows.shows_records)


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of structs (null if there is no row) or of arrays of structs."""

    column: str
    is_many: bool
    shows_records: bool = False

    def read(self, frame: DataFrame) -> DataFrame:
        each = F.explode(quoted(self.column)) if self.is_many else F.col(quoted(self.column))
        rows = frame.select(each.alias("__it")).where("__it is not null").select("__it.*")
        return with_records_shown(rows) if self.shows_records else rows


def text_of(path: Path) -> str:
    return ".".join(map(quoted, path))


def struct_of(fields: Mapping[str, str]) -> str:
    return f"named_struct({', '.join(f'{literal(name)}, {value}' for name, value in fields.items())})"


def all_of(conditions: Sequence[str]) -> str:
    return " and ".join(conditions)
