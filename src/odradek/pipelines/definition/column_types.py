"""Spark's column types, without importing Spark; `ddl` is their notation in Spark and in messages."""

from __future__ import annotations

import re

from odradek.conventions.dataclass import dataclass

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parameters that are types: `BIGINT`, `STRING`, `TIMESTAMP` …."""

    name: str

    @property
    def ddl(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal:
    """A decimal number of `precision` digits, `scale` of them after the decimal point."""

    precision: int = 10
    scale: int = 0

    @property
    def ddl(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    element: ColumnType

    @property
    def ddl(self) -> str:
        return f"ARRAY<{self.element.ddl}>"


@dataclass(frozen=True, slots=True)
class Map:
    key: ColumnType
    value: ColumnType

    @property
    def ddl(self) -> str:
        return f"MAP<{self.key.ddl}, {self.value.ddl}>"


@dataclass(frozen=True, slots=True)
class Struct:
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
    """A name in SQL: in backticks unless it is a plain identifier."""
    return name if PLAIN_NAME.match(name) else "`" + name.replace("`", "``") + "`"


def columns_ddl(columns: tuple[Column, ...]) -> str:
    """The columns in DDL, as Spark's `from_json` and `schema()` accept it."""
    return ", ".join(column.ddl for column in columns)
