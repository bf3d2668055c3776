"""Finds the field of a JSON record that does not fit its schema, for the reason of a dead letter.

A record is parsed as a whole. Only one that Spark rejects is parsed again, once for each field and with that field
alone. The expression is inside a lambda function, which Spark interprets, so that it adds nothing to the generated code
that the other records run through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.column_types import Struct
from odradek.pipelines.spark.hidden_columns import quoted
from odradek.pipelines.spark.one_pass.row_columns import literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.pipelines.definition.column_types import Column, ColumnType

    Path = tuple[str, ...]

MISFIT = "does not fit the schema"  # the kind of the reason
UNREADABLE = "__unreadable"  # Spark's corrupt-record column: the text of a record that was not parsed completely
EXCERPT = 60
TEXT = "__text"  # the lambda variable
OPTIONS = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{UNREADABLE}')"


def detailed_reason(reason: str, value: str, columns: Sequence[Column]) -> str:
    """SQL for the reason with the first field that does not fit; `reason` and `value` are SQL for the original ones."""
    cases = " ".join(f"when {is_misfit} then {message}" for is_misfit, message in misfits(columns))
    found = f"element_at(transform(array(cast({value} as string)), {TEXT} -> case {cases} end), 1)"
    return f"if(startswith({reason}, {literal(MISFIT)}), coalesce({found}, {reason}), {reason})"


def misfits(columns: Sequence[Column]) -> Iterator[tuple[str, str]]:
    """A condition and a message for each field; structs precede their fields."""
    excerpt = f"substring({TEXT}, 1, {EXCERPT})"
    no_object = literal(f"{MISFIT}: expected an object, found ")
    yield f"not startswith(ltrim({TEXT}), '{{')", f"concat({no_object}, {excerpt})"
    for path, kind in fields_of(columns):
        found = found_at(path)
        is_struct = isinstance(kind, Struct)
        expected = "an object" if is_struct else kind.ddl
        message = literal(f"{MISFIT}: field {'.'.join(path)}: expected {expected}, found ")
        is_misfit = f"{found} not like '{{%' and {found} <> 'null'" if is_struct else is_unread(path, kind)
        yield is_misfit, f"concat({message}, substring(coalesce({found}, 'nothing'), 1, {EXCERPT}))"


def fields_of(columns: Sequence[Column], before: Path = ()) -> Iterator[tuple[Path, ColumnType]]:
    """The fields of a record and of its structs; arrays and maps are single fields."""
    for each in columns:
        path = (*before, each.name)
        yield path, each.type
        if isinstance(each.type, Struct):
            yield from fields_of(each.type.fields, path)


def is_unread(path: Path, kind: ColumnType) -> str:
    """Whether Spark rejects the record when it reads this field alone."""
    ddl = kind.ddl
    for name in reversed(path[1:]):
        ddl = f"STRUCT<{quoted(name)}: {ddl}>"
    schema = literal(f"{quoted(path[0])} {ddl}, {UNREADABLE} STRING")
    return f"from_json({TEXT}, {schema}, {OPTIONS}).{UNREADABLE} is not null"


def found_at(path: Path) -> str:
    """The JSON of a field; null if the record does not have it, or if the path cannot be written."""
    if any("'" in name and '"' in name for name in path):
        return "cast(null as string)"
    steps = "".join(f'["{name}"]' if "'" in name else f"['{name}']" for name in path)
    return f"to_json(try_variant_get(try_parse_json({TEXT}), {literal(f'${steps}')}, 'variant'))"
