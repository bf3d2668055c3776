"""Parses columns from Spark's DDL: `id BIGINT NOT NULL, readings STRUCT<pressure: DOUBLE>, tags ARRAY<STRING>`."""

from __future__ import annotations

import re
from typing import NoReturn

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
        self._tokens = [(match[1], match.start(1)) for match in TOKEN.finditer(text) if match[1]]
        self._tokens.append(("", len(text.rstrip())))
        self._next = 0

    def parse(self) -> tuple[Column, ...]:
        if not self._peek():
            self._fail("the schema is empty", "write its columns: id BIGINT, name STRING")
        columns = self._columns(depth=0)
        if self._peek():
            self._fail(f"unexpected '{self._peek()}'", "separate columns with commas")
        return columns

    def _peek(self) -> str:
        return self._tokens[self._next][0]

    def _take(self) -> str:
        text = self._peek()
        self._next += bool(text)
        return text

    def _skip(self, word: str) -> bool:
        """Takes the next word if it is this one."""
        is_next = self._peek().upper() == word
        self._next += is_next
        return is_next

    def _fail(self, message: str, hint: str, *, at: int | None = None) -> NoReturn:
        position = self._tokens[self._next if at is None else at][1]
        raise DdlError(message, hint, *line_and_column(self._text, position))

    def _expect(self, wanted: str, after: str) -> None:
        if not self._skip(wanted):
            self._fail(f"expected '{wanted}' after {after}, found {described(self._peek())}", f"add '{wanted}'")

    def _columns(self, depth: int) -> tuple[Column, ...]:
        columns: dict[str, Column] = {}
        while True:
            begin = self._next
            column = self._column(depth)
            if column.name.lower() in columns:
                self._fail(f"duplicate column '{column.name}'", "names must differ in more than case", at=begin)
            columns[column.name.lower()] = column
            if not self._skip(","):
                return tuple(columns.values())

    def _column(self, depth: int) -> Column:
        name = self._peek()
        if not re.match(r"[`\w]", name):
            self._fail(f"expected a column name, found {described(name)}", "write name TYPE")
        self._next += 1
        if name[0] == "`":
            name = name[1:-1].replace("``", "`")
        self._skip(":")
        if self._peek() in {"", ",", ">"}:
            self._fail(f"the column '{name}' has no type", f"write {name} STRING, or another type")
        kind = self._type(depth)
        is_required = self._skip("NOT")
        if is_required:
            self._expect("NULL", "NOT")
        if self._skip("COMMENT") and not self._take().startswith("'"):
            self._fail("COMMENT without text", "write COMMENT 'text'", at=self._next - 1)
        return Column(name, kind, not is_required)

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
            return Primitive(f"{name}({self._numbers(name, most=1)[0]})")
        if name not in {"ARRAY", "MAP", "STRUCT"}:
            hint = suggestion(word, [*PRIMITIVES, *NESTED], what="types")
            self._fail(f"{described(word)} is not a type", hint, at=begin)
        self._expect("<", name)
        kind: ColumnType
        if name == "ARRAY":
            kind, last = Array(self._type(depth + 1)), "the type of ARRAY's elements"
        elif name == "MAP":
            key = self._type(depth + 1)
            self._expect(",", "the type of MAP's keys")
            kind, last = Map(key, self._type(depth + 1)), "the type of MAP's values"
        else:
            kind, last = Struct(self._columns(depth + 1)), "the fields of STRUCT"
        self._expect(">", last)
        return kind

    def _decimal(self, begin: int) -> Decimal:
        if self._peek() != "(":
            return Decimal()
        precision, scale = (*self._numbers("DECIMAL", most=2), 0)[:2]
        if not 1 <= precision <= 38 or scale > precision:
            message = f"DECIMAL({precision},{scale}) is out of range"
            self._fail(message, "the precision is 1 to 38, the scale 0 to the precision", at=begin)
        return Decimal(precision, scale)

    def _numbers(self, name: str, most: int) -> list[int]:
        """`(10)` or `(10, 2)`."""
        self._expect("(", name)
        numbers: list[int] = []
        while not numbers or (len(numbers) < most and self._skip(",")):
            if not re.fullmatch(r"[0-9]{1,9}", self._peek()):
                self._fail(f"expected a number in {name}, found '{self._peek()}'", f"write {name}(10)")
            numbers.append(int(self._take()))
        self._expect(")", f"the numbers of {name}")
        return numbers
