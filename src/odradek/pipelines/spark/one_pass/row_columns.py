"""Sources and steps as columns of one frame, beside the record that their rows are made of.

A step that makes at most one row of a record is a struct, null where there is no row; one that may make several is an
array of structs. `mapped` and `filtered` write the expression for either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.spark.hidden_columns import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

ROW = "__row"  # the variable that stands for an element of an array


class NotLiftable(Exception):
    """Something that cannot be written as an expression over single records; the message names it."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A column of rows."""

    name: str
    fields: T.StructType
    is_many: bool

    @property
    def column(self) -> str:
        return quoted(self.name)

    @property
    def variable(self) -> str:
        """What stands for one row in an expression that `mapped` or `filtered` is given."""
        return ROW if self.is_many else self.name

    @property
    def row(self) -> str:
        return quoted(self.variable)

    def mapped(self, expression: str) -> str:
        """The expression for every row; nothing where there is none."""
        if self.is_many:
            return f"transform({self.column}, {ROW} -> {expression})"
        return f"if({self.column} is not null, {expression}, null)"

    def filtered(self, condition: str) -> str:
        if self.is_many:
            return f"filter({self.column}, {ROW} -> {condition})"
        return f"if({self.column} is not null and {condition}, {self.column}, null)"

    def count(self, condition: str) -> str:
        """An aggregate: of how many rows it is true."""
        if self.is_many:
            return f"coalesce(sum(size(filter({self.column}, {ROW} -> {condition}))), 0)"
        return f"count_if({self.column} is not null and {condition})"

    def holds_or(self, condition: str, otherwise: str) -> str:
        """True of a record if the condition holds for all its rows, else what `otherwise` gives."""
        unmet = f"exists({self.column}, {ROW} -> not {condition})" if self.is_many else f"not {condition}"
        return f"if({self.column} is not null and {unmet}, {otherwise}, true)"


class RowColumns:
    """A frame that grows by a column for each source, step and output."""

    def __init__(self, frame: DataFrame) -> None:
        self.frame = frame

    def add(self, name: str, expression: str) -> Rows:
        """What Spark does not take here it may take as a query of its own, or say there what is wrong with it."""
        try:
            self.frame = self.frame.withColumn(name, F.expr(expression))
        except (AnalysisException, ParseException) as error:
            raise NotLiftable(name) from error
        return self.rows(name)

    def add_record(self, name: str, columns: Sequence[str], condition: str | None = None) -> Rows:
        """The record itself as a row of these columns, if the condition holds."""
        row = struct_of({each: quoted(each) for each in columns})
        return self.add(name, row if condition is None else f"if({condition}, {row}, null)")

    def rows(self, name: str) -> Rows:
        kind = self.frame.schema[name].dataType
        is_many = isinstance(kind, T.ArrayType)
        fields = kind.elementType if isinstance(kind, T.ArrayType) else kind
        return Rows(name, cast("T.StructType", fields), is_many)

    def type_of(self, rows: Rows, expression: str) -> T.DataType:
        """What an expression over single rows gives."""
        kind = self.frame.select(F.expr(rows.mapped(expression)).alias("it")).schema["it"].dataType
        return kind.elementType if rows.is_many and isinstance(kind, T.ArrayType) else kind


def frame_of(frame: DataFrame, rows: Rows) -> DataFrame:
    """The rows of a column as a frame."""
    each = F.explode(F.col(rows.column)) if rows.is_many else F.col(rows.column)
    return frame.select(each.alias("__it")).where("__it is not null").select("__it.*")


def together(columns: Sequence[Rows]) -> str:
    """Rows of the same fields in one array; what is not there is null in it."""
    single = [each.column for each in columns if not each.is_many]
    several = [f"coalesce({each.column}, array())" for each in columns if each.is_many]
    arrays = ([f"array({', '.join(single)})"] if single else []) + several
    return arrays[0] if len(arrays) == 1 else f"concat({', '.join(arrays)})"


def struct_of(fields: Mapping[str, str]) -> str:
    return f"named_struct({', '.join(f'{literal(name)}, {value}' for name, value in fields.items())})"


def literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
