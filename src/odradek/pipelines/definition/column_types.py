"""Types of columns, in Spark's vocabulary and without Spark; `ddl` is what both Spark and people read."""

from __future__ import annotations

import re
from dataclasses import dataclass

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Primitive:
    """`BIGINT`, `STRING`, `TIMESTAMP` …: a type that is a word."""

    name: str

    @property
    def ddl(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal:
    """A number with `scale` of its `precision` digits after the point."""

    precision: int = 10
    scale: int = 0

    @property
    def ddl(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    """Values of one type, in order."""

    element: ColumnType

    @property
    def ddl(self) -> str:
        return f"ARRAY<{self.element.ddl}>"


@dataclass(frozen=True, slots=True)
class Map:
    """Values by key."""

    key: ColumnType
    value: ColumnType

    @property
    def ddl(self) -> str:
        return f"MAP<{self.key.ddl}, {self.value.ddl}>"


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields."""

    fields: tuple[Column, ...]

    @property
    def ddl(self) -> str:
        return f"STRUCT<{', '.join(f'{quoted(each.name)}: {each.type.ddl}{each.suffix}' for each in self.fields)}>"


ColumnType = Primitive | Decimal | Array | Map | Struct


@dataclass(frozen=True, slots=True)
class Column:
    """A named value of a row, or of a struct."""

    name: str
    type: ColumnType
    nullable: bool = True

    @property
    def ddl(self) -> str:
        return f"{quoted(self.name)} {self.type.ddl}{self.suffix}"

    @property
    def suffix(self) -> str:
        return "" if self.nullable else " NOT NULL"


def quoted(name: str) -> str:
    """A name as SQL wants it: in backticks where it is not a plain word."""
    return name if PLAIN_NAME.match(name) else "`" + name.replace("`", "``") + "`"


def columns_ddl(columns: tuple[Column, ...]) -> str:
    """The columns of a table as Spark's `from_json` and `schema()` take them."""
    return ", ".join(column.ddl for column in columns)
