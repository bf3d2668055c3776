"""Compiles functions that find the error codes of a response, however deep they are, with one loop for each array."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from odradek.protocol.fields import StructType
from odradek.protocol.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Set

    from odradek.protocol.schema import Response

ERROR_FIELD = "error_code"


@functools.cache
def error_finder(message: type[Response]) -> Callable[[Any], Set[int] | None]:
    """A function from a response to the set of its error codes; None if it has none."""
    source = Source()
    with source.block("def find_errors(message):"):
        source.line("found = None")
        _write_struct(source, message, "message")
        source.line("return found")
    compiled: Callable[[Any], Set[int] | None] = source.compile("find_errors", f"errors of {message.__name__}")
    return compiled


def _write_struct(source: Source, struct: StructType, name: str) -> None:
    for field in struct.fields:
        if field.name == ERROR_FIELD:
            with source.block(f"if {name}.{field.name}:"):
                source.line(f"found = {{{name}.{field.name}}} if found is None else found | {{{name}.{field.name}}}")
        elif field.kind == "array" and isinstance(field.element, StructType) and _has_errors(field.element):
            each = source.fresh("each")
            with source.block(f"for {each} in {name}.{field.name} or ():"):
                _write_struct(source, field.element, each)


def _has_errors(struct: StructType) -> bool:
    return any(
        field.name == ERROR_FIELD or (isinstance(field.element, StructType) and _has_errors(field.element))
        for field in struct.fields
    )
