"""Parses columns from Spark's DDL: `id BIGINT NOT NULL, readings STRUCT<pressure: DOUBLE>, tags ARRAY<STRING>`."""

from __future__ import annotations

import re
from typing import NoReturn

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.column_types import Array, Column, ColumnType, Decimal, Map, Primitive, Struct
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.yaml_text import line_and_column

PRIMITIVES = {
    "BOOLEAN": "BOOLEAN", "TINYINT": "TINYINT", "BYTE": "TINYINT", "SMALLINT": "SMALLINT", "SHORT": "SMALLINT",
    "INT": "INT", "INTEGER": "INT", "BIGINT": "BIGINT", "LONG": "BIGINT", "FLOAT": "FLOAT", "REAL": "FLOAT",
    "DOUBLE": "DOUBLE", "DATE": "DATE", "TIMESTAMP": "TIMESTAMP", "TIMESTAMP_NTZ": "TIMESTAMP_NTZ",
    "TIMESTAMP_LTZ": "TIMESTAMP", "STRING": "STRING", "BINARY": "BINARY", "VARIANT": "VARIANT",
}  # fmt: skip
NESTED = ("DECIMAL", "ARRAY", "MAP", "STRUCT", "VARCHAR", "CHAR")
TOKEN = re.compile(r"\s*(?:--[^\n]*\n\s*)*(`(?:[^`]|``)+`|'(?:[^'\\]|\\.)*'|\w+|[<>(),:]|\S)?")
DEEPEST = 60


@dataclass(frozen=True, slots=True)
class Token:
    """A word, name or bracket, and the position of its first character."""

    text: str
    position: int


class DdlError(Exception):
    """A syntax error, its line and column in the text (from 1), and a hint."""

    def __init__(self, message: str, hint: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.line = line
        self.column = column


def described(word: str) -> str:
    return f"'{word}'" if word else "the end"


def parse_ddl(text: str) -> tuple[Column, ...]:
    """The columns, or `DdlError`."""
    return DdlParser(text).parse()


class DdlParser:
    """A recursive-descent parser."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = []
        position = 0
        while match := TOKEN.match(text, position):
            if match[1] is None:
                break
            self._tokens.append(Token(match[1], match.start(1)))
            position = match.end()
        self._next = 0

    def parse(self) -> tuple[Column, ...]:
        if not self._tokens:
            self._fail("the schema is empty", "write its columns: id BIGINT, name STRING")
        columns = self._columns(closing=None, depth=0)
        if self._next < len(self._tokens):
            self._fail(f"unexpected '{self._peek()}'", "separate columns with commas")
        return columns

    def _peek(self) -> str:
        return self._tokens[self._next].text if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        text = self._peek()
        self._next += 1
        return text

    def _fail(self, message: str, hint: str, *, at: int | None = None) -> NoReturn:
        index = self._next if at is None else at
        position = self._tokens[index].position if index < len(self._tokens) else len(self._text.rstrip())
        raise DdlError(message, hint, *line_and_column(self._text, position))

    def _expect(self, wanted: str, after: str) -> None:
        if self._peek() != wanted:
            self._fail(f"expected '{wanted}' after {after}, found {described(self._peek())}", f"add '{wanted}'")
        self._next += 1

    def _columns(self, *, closing: str | None, depth: int) -> tuple[Column, ...]:
        columns: list[Column] = []
        seen: set[str] = set()
        while True:
            begin = self._next
            column = self._column(depth)
            if column.name.lower() in seen:
                self._fail(f"duplicate column '{column.name}'", "names must differ in more than case", at=begin)
            seen.add(column.name.lower())
            columns.append(column)
            if self._peek() != ",":
                break
            self._next += 1
        if closing is not None:
            self._expect(closing, "the fields of STRUCT")
        return tuple(columns)

    def _column(self, depth: int) -> Column:
        name = self._take()
        if not name or not (name[0] == "`" or re.match(r"\w", name)):
            self._next -= 1
            self._fail(f"expected a column name, found {described(name)}", "write name TYPE")
        if name[0] == "`":
            name = name[1:-1].replace("``", "`")
        if self._peek() == ":":
            self._next += 1
        if self._peek() in {"", ",", ">"}:
            self._fail(f"the column '{name}' has no type", f"write {name} STRING, or another type")
        kind = self._type(depth)
        return Column(name, kind, self._nullable())

    def _nullable(self) -> bool:
        """Parses what may follow a type (NOT NULL, COMMENT 'text'); returns whether the column is nullable."""
        nullable = True
        if self._peek().upper() == "NOT":
            self._next += 1
            if self._take().upper() != "NULL":
                self._next -= 1
                self._fail("NOT without NULL", "write NOT NULL")
            nullable = False
        if self._peek().upper() == "COMMENT":
            self._next += 1
            if not self._peek().startswith("'"):
                self._fail("COMMENT without text", "write COMMENT 'text'")
            self._next += 1
        return nullable

    def _type(self, depth: int) -> ColumnType:
        if depth > DEEPEST:
            self._fail("types are nested too deeply", f"use at most {DEEPEST} levels")
        begin = self._next
        word = self._take()
        name = word.upper()
        if name in PRIMITIVES:
            return Primitive(PRIMITIVES[name])
        if name in {"DECIMAL", "DEC", "NUMERIC"}:
            return self._decimal(begin)
        if name in {"VARCHAR", "CHAR"}:
            return Primitive(f"{name}({self._numbers(name, (1,))[0]})")
        if name == "ARRAY":
            self._expect("<", name)
            element = self._type(depth + 1)
            self._expect(">", "the type of ARRAY's elements")
            return Array(element)
        if name == "MAP":
            self._expect("<", name)
            key = self._type(depth + 1)
            self._expect(",", "the type of MAP's keys")
            value = self._type(depth + 1)
            self._expect(">", "the type of MAP's values")
            return Map(key, value)
        if name == "STRUCT":
            self._expect("<", name)
            return Struct(self._columns(closing=">", depth=depth + 1))
        hint = suggestion(word, [*PRIMITIVES, *NESTED], what="types")
        return self._fail(f"{described(word)} is not a type", hint, at=begin)

    def _decimal(self, begin: int) -> Decimal:
        if self._peek() != "(":
            return Decimal()
        precision, scale = (*self._numbers("DECIMAL", (1, 2)), 0)[:2]
        if not 1 <= precision <= 38 or scale > precision:
            self._fail(
                f"DECIMAL({precision},{scale}) is out of range",
                "the precision is 1 to 38, the scale 0 to the precision",
                at=begin,
            )
        return Decimal(precision, scale)

    def _numbers(self, name: str, counts: tuple[int, ...]) -> list[int]:
        """`(10)` or `(10, 2)`."""
        self._expect("(", name)
        numbers: list[int] = []
        while True:
            if not re.fullmatch(r"[0-9]{1,9}", self._peek()):
                self._fail(f"expected a number in {name}, found '{self._peek()}'", f"write {name}(10)")
            numbers.append(int(self._take()))
            if self._peek() != ",":
                break
            self._next += 1
        if len(numbers) not in counts:
            self._fail(f"{name} takes {' or '.join(map(str, counts))} numbers", f"write {name}(10)")
        self._expect(")", f"the numbers of {name}")
        return numbers
