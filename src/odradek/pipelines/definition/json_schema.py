"""Converts a JSON Schema to columns, by its properties and their types; other keywords are ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.pipelines.definition.column_types import Array, Column, ColumnType, Map, Primitive, Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

STRING = Primitive("STRING")
PRIMITIVES = {
    "string": STRING,
    "integer": Primitive("BIGINT"),
    "number": Primitive("DOUBLE"),
    "boolean": Primitive("BOOLEAN"),
    "null": STRING,
}
FORMATS = {"date-time": Primitive("TIMESTAMP"), "date": Primitive("DATE")}
DEEPEST = 60


class JsonSchemaError(Exception):
    """A schema that cannot be converted to columns; `path` is the keys that lead to the offending part."""

    def __init__(self, message: str, path: tuple[str, ...]) -> None:
        super().__init__(message)
        self.message = message
        self.path = path


def columns_of(schema: Any) -> tuple[Column, ...]:
    """One column for each property, or `JsonSchemaError`."""
    if not isinstance(schema, dict):
        raise JsonSchemaError("a JSON Schema must be a mapping", ())
    return Converter(schema).columns(schema, ())


class Converter:
    """Converts one document, within which `$ref` is resolved."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def columns(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> tuple[Column, ...]:
        schema, path = self._resolved(schema, path)
        if "object" not in as_list(schema.get("type", "object")):
            message = f"the schema of a record must be of type object, not {schema.get('type')}"
            raise JsonSchemaError(message, (*path, "type"))
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not properties:
            raise JsonSchemaError("the object has no properties, and so no columns", path)
        required = as_list(schema.get("required", []))
        columns: list[Column] = []
        seen: set[str] = set()
        for name, value in properties.items():
            where = (*path, "properties", name)
            if name.lower() in seen:
                raise JsonSchemaError(f"the property '{name}' differs from another property in case only", where)
            seen.add(name.lower())
            kind, may_be_null = self._type(value, where)
            columns.append(Column(name, kind, name not in required or may_be_null))
        return tuple(columns)

    def _resolved(self, schema: Any, path: tuple[str, ...]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """The schema, or the schema that its `$ref` points to."""
        for _ in range(DEEPEST):
            if not isinstance(schema, dict):
                raise JsonSchemaError("a schema must be a mapping", path)
            reference = schema.get("$ref")
            if reference is None:
                return schema, path
            if not isinstance(reference, str) or not reference.startswith("#"):
                raise JsonSchemaError(f"$ref {reference} points outside the document", (*path, "$ref"))
            target: Any = self._document
            for part in [each for each in reference.removeprefix("#").split("/") if each]:
                key = part.replace("~1", "/").replace("~0", "~")
                if not isinstance(target, dict) or key not in target:
                    raise JsonSchemaError(f"$ref {reference} was not found in the document", (*path, "$ref"))
                target = target[key]
            schema = target
        raise JsonSchemaError("$ref forms a cycle", (*path, "$ref"))

    def _type(self, schema: Any, path: tuple[str, ...]) -> tuple[ColumnType, bool]:
        """The type of a value, and whether it may be null."""
        if len(path) > 2 * DEEPEST:
            raise JsonSchemaError("the schema is nested too deeply, or refers to itself", path)
        schema, path = self._resolved(schema, path)
        options = as_list(schema.get("anyOf", schema.get("oneOf", [])))
        if options:
            return self._union(options, path)
        written = [name for name in as_list(schema.get("type", [])) if isinstance(name, str)]
        may_be_null, names = "null" in written, [name for name in written if name != "null"]
        if len(names) > 1:
            return Primitive("DOUBLE") if set(names) == {"integer", "number"} else STRING, may_be_null
        name = names[0] if names else guessed_type(schema)
        if name == "object":
            return self._object(schema, path), may_be_null
        if name == "array":
            return Array(self._type(schema.get("items", {"type": "string"}), (*path, "items"))[0]), may_be_null
        if name not in PRIMITIVES:
            raise JsonSchemaError(f"'{name}' is not a JSON type", (*path, "type"))
        by_format = FORMATS.get(str(schema.get("format"))) if name == "string" else None
        return by_format or PRIMITIVES[name], may_be_null

    def _union(self, options: list[Any], path: tuple[str, ...]) -> tuple[ColumnType, bool]:
        real = [each for each in options if not (isinstance(each, dict) and each.get("type") == "null")]
        if len(real) != 1:
            return STRING, len(real) < len(options)  # Spark reads a value of several types as text
        kind, may_be_null = self._type(real[0], path)
        return kind, may_be_null or len(real) < len(options)

    def _object(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> ColumnType:
        if schema.get("properties"):
            return Struct(self.columns(schema, path))
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict):
            return Map(STRING, self._type(extra, (*path, "additionalProperties"))[0])
        return Map(STRING, STRING)


def guessed_type(schema: Mapping[str, Any]) -> str:
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
