"""Parses `schema:` of a definition: columns in DDL, or an Avro schema, inline or in a file next to the definition."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.pipelines.definition.avro import AvroSchemaError, avro_columns, parsed
from odradek.pipelines.definition.ddl import DdlError, parse_ddl
from odradek.pipelines.definition.model import RecordSchema
from odradek.pipelines.definition.nodes import MappingNode, Node, Scalar, TreeTooLarge, describe, to_plain
from odradek.pipelines.definition.places import Place
from odradek.pipelines.definition.vocabulary import Encoding

if TYPE_CHECKING:
    from odradek.pipelines.definition.column_types import Column
    from odradek.pipelines.definition.places import Problems

DDL_HINT = "for example id BIGINT, name STRING"


def read_columns(node: Node, what: str, problems: Problems) -> tuple[Column, ...] | None:
    """Parses columns in DDL."""
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        problems.error(node.place, f"{what} must be columns in DDL, not {describe(node)}", DDL_HINT)
        return None
    try:
        return parse_ddl(node.value)
    except DdlError as error:
        problems.error(node.place.inside(error.line, error.column), f"{what}: {error.message}", error.hint)
        return None


def read_schema(node: Node, encoding: Encoding, what: str, problems: Problems) -> RecordSchema | None:
    """Parses the schema of records, an Avro schema for Avro; None if it is invalid, with the problems reported."""
    if encoding is not Encoding.AVRO:
        columns = read_columns(node, what, problems)
        return None if columns is None else RecordSchema(columns, place=node.place)
    if not isinstance(node, MappingNode):
        problems.error(node.place, f"{what} must be an Avro schema", "write schema: {file: record.avsc}")
        return None
    document = read_document(node, what, problems)
    if document is None:
        return None
    try:
        columns = avro_columns(document)
    except AvroSchemaError as error:
        is_within = node.get("avro") is not None
        hint = "write the record itself, without avro:" if is_within else "write {type: record, name: …, fields: […]}"
        problems.error(node.place, f"{what}: {error}", hint)
        return None
    return RecordSchema(columns, canonical(document), place=node.place)


def read_document(node: MappingNode, what: str, problems: Problems) -> Any:
    """The content of the file in `{file: …}`, or the mapping itself."""
    file = node.get("file")
    if file is None or len(node.entries) > 1:
        try:
            return to_plain(node)
        except TreeTooLarge:
            problems.error(node.place, f"{what} is too large", "write it without nested aliases")
            return None
    if not isinstance(file, Scalar) or not isinstance(file.value, str):
        problems.error(file.place, f"file of {what} must be a path, not {describe(file)}")
        return None
    path = Path(file.place.file).parent / file.value
    try:
        return json.loads(path.read_text())
    except OSError as error:
        hint = "relative paths start at the definition's folder"
        problems.error(file.place, f"{what} cannot be read: {path}: {error.strerror}", hint)
    except json.JSONDecodeError as error:
        problems.error(Place(str(path), error.lineno, error.colno), f"{what} is not JSON: {error.msg}", "fix the file")
    except (UnicodeDecodeError, ValueError, RecursionError):
        problems.error(file.place, f"{what} cannot be read: {path} is not JSON in UTF-8", "fix the file")
    return None


def read_writer(node: Node, what: str, problems: Problems) -> str | None:
    """A writer's Avro schema, as a path, `{file: …}` or inline."""
    if isinstance(node, Scalar) and isinstance(node.value, str):
        node = MappingNode(((Scalar("file", "file", node.place), node),), node.place)
    if not isinstance(node, MappingNode):
        problems.error(node.place, f"{what} must be an Avro schema, not {describe(node)}", "name its file: v1.avsc")
        return None
    document = read_document(node, what, problems)
    if document is None:
        return None
    try:
        parsed(document, {})
    except AvroSchemaError as invalid:
        problems.error(node.place, f"{what}: {invalid}", "fix the schema")
        return None
    return canonical(document)


def canonical(document: Any) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"))
