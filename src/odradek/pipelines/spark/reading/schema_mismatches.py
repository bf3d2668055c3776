"""Finds the field of a JSON record that does not fit its schema, for the reason of a dead letter.

A record that Spark rejects is parsed twice more: by its schema, which gives null for each field that does not fit, and
with a text for each field. The reason names the first field that only the second parse has. Arrays and maps are tested
one by one, because Spark leaves out the elements that do not fit.

Spark plans the expression again in each batch and sends it with each task, so it must be small: it grows with the
structs of a schema, not with their fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.column_types import Array, Map, Struct
from odradek.pipelines.spark.frames import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from odradek.pipelines.definition.column_types import Column, ColumnType

    Path = tuple[str, ...]

MISMATCH = "does not fit the schema"  # the kind of the reason
UNREADABLE = "__unreadable"  # Spark's corrupt-record column: the text of a record that was not parsed completely
EXCERPT = 60
OPTIONS = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{UNREADABLE}')"


def mismatch_message(value: str, columns: Sequence[Column]) -> str:
    """SQL for the first field of a value that does not fit; null if none is found."""
    return f"coalesce({', '.join(mismatches(f'cast({value} as string)', columns))})"


def mismatches(text: str, columns: Sequence[Column]) -> Iterator[str]:
    """SQL for messages; the first that is not null is the reason."""
    yield f"if(startswith(ltrim({text}), '{{'), null, {message(literal(''), literal('an object'), text)})"
    for path, fields in structs_of(columns):
        json = f"to_json({at(text, path)})" if path else text
        yield mismatch_in(json, path, fields)
        for each in fields:
            if isinstance(each.type, Array | Map):
                yield array_mismatch(json, (*path, each.name), each.type)


def structs_of(columns: Sequence[Column], path: Path = ()) -> Iterator[tuple[Path, Sequence[Column]]]:
    """The record and each struct in it: its path and its fields."""
    yield path, columns
    for each in columns:
        if isinstance(each.type, Struct):
            yield from structs_of(each.type.fields, (*path, each.name))


def mismatch_in(json: str, path: Path, fields: Sequence[Column]) -> str:
    """The message for the first field that an object has and that Spark does not read by the schema."""
    texts = keys_read(json, ((each.name, "STRING") for each in fields))
    names = f"array_except({texts}, {keys_read(json, ((each.name, each.type.ddl) for each in fields))})"
    kinds = ", ".join(f"{literal(each.name)}, {literal(expected(each.type))}" for each in fields)
    found = f"to_json(try_element_at(try_variant_get(try_parse_json({json}), '$', 'map<string, variant>'), __name))"
    field = f"concat({literal('field ' + ''.join(f'{each}.' for each in path))}, __name, ': ')"
    return f"get(transform({names}, __name -> {message(field, f'try_element_at(map({kinds}), __name)', found)}), 0)"


def keys_read(json: str, fields: Iterable[tuple[str, str]]) -> str:
    """The names of the fields that Spark reads from an object, without those that are null."""
    schema = literal(", ".join(f"{quoted(name)} {kind}" for name, kind in fields))
    return f"json_object_keys(to_json(from_json({json}, {schema}), map('ignoreNullFields', 'true')))"


def array_mismatch(json: str, path: Path, kind: ColumnType) -> str:
    """The message for an array or map that Spark rejects when it reads this field alone."""
    schema = literal(f"{quoted(path[-1])} {kind.ddl}, {UNREADABLE} STRING")
    found = message(literal(f"field {'.'.join(path)}: "), literal(kind.ddl), f"to_json({at(json, path[-1:])})")
    return f"if(from_json({json}, {schema}, {OPTIONS}).{UNREADABLE} is not null, {found}, null)"


def message(field: str, kind: str, found: str) -> str:
    """SQL for the message, null if the field is; all arguments are SQL."""
    excerpt = f"substring(coalesce({found}, 'nothing'), 1, {EXCERPT})"
    return f"concat({literal(f'{MISMATCH}: ')}, {field}, 'expected ', {kind}, ', found ', {excerpt})"


def expected(kind: ColumnType) -> str:
    return "an object" if isinstance(kind, Struct) else kind.ddl


def at(text: str, path: Path) -> str:
    """What a record has at a path; null if it has nothing there, or if the path cannot be written."""
    if any("'" in name and '"' in name for name in path):
        return "cast(null as variant)"
    steps = "".join(f'["{name}"]' if "'" in name else f"['{name}']" for name in path)
    return f"try_variant_get(try_parse_json({text}), {literal(f'${steps}')}, 'variant')"
