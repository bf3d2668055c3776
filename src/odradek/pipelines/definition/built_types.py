"""The types of literals, of casts, and of structs, arrays and maps that a query builds."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from odradek.pipelines.definition.column_types import Array, Column, ColumnType, Decimal, Map, Primitive, Struct
from odradek.pipelines.definition.ddl import DdlError, parse_ddl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

INT, BIGINT, DOUBLE, STRING = (Primitive(name) for name in ("INT", "BIGINT", "DOUBLE", "STRING"))


def literal_type(node: exp.Literal) -> ColumnType | None:
    text = str(node.this)
    if node.is_string:
        return STRING
    if text.isdigit():
        return INT if int(text) < 2**31 else BIGINT if int(text) < 2**63 else None
    whole, dot, rest = text.partition(".")
    if dot and (whole + rest).isdigit():
        digits = len((whole + rest).lstrip("0")) or 1
        return Decimal(max(digits, len(rest)), len(rest)) if max(digits, len(rest)) <= 38 else None
    return DOUBLE if "e" in text.lower() else None


@functools.lru_cache(maxsize=256)
def declared_type(text: str) -> ColumnType | None:
    try:
        columns = parse_ddl(f"x {text}")
    except DdlError:
        return None
    return columns[0].type if len(columns) == 1 else None


def built_type(name: str, arguments: Sequence[exp.Expr], types: Sequence[ColumnType | None]) -> ColumnType | None:
    """The type of a struct or an array that is built from values of known types."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already, so imported already

    if name in {"array", "collect_list", "collect_set"}:
        return Array(types[0]) if types and types[0] is not None and len(set(types)) == 1 else None
    if name == "map":
        return Map(types[0], types[1]) if len(types) == 2 and types[0] is not None and types[1] is not None else None
    if name == "named_struct":
        if len(types) % 2 or not all(isinstance(each, exp.Literal) and each.is_string for each in arguments[::2]):
            return None
        names, kinds = [str(each.this) for each in arguments[::2]], types[1::2]
    else:
        if not all(isinstance(each, exp.Alias | exp.Column) for each in arguments):
            return None
        names, kinds = [each.alias_or_name for each in arguments], types
    fields = [Column(each, kind) for each, kind in zip(names, kinds, strict=True) if kind is not None]
    return Struct(tuple(fields)) if len(fields) == len(kinds) and fields else None
