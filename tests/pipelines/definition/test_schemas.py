"""Schemas in DDL and Avro are converted to columns, or rejected with the right place."""

from __future__ import annotations

import json
import string
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipelines.definition.avro import AvroSchemaError, avro_columns
from odradek.pipelines.definition.column_types import (
    Array,
    Column,
    ColumnType,
    Decimal,
    Map,
    Primitive,
    Struct,
    columns_ddl,
)
from odradek.pipelines.definition.ddl import PRIMITIVES, DdlError, parse_ddl
from odradek.pipelines.planning.loading import load_yaml
from tests.pipelines.definition.definitions import mappings

if TYPE_CHECKING:
    from pathlib import Path

NAMES = st.tuples(st.sampled_from("abC_"), st.text(string.ascii_letters + " `:<>,", max_size=7)).map("".join)


def tables_of(types: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[list[Column]]:
    columns = st.builds(Column, NAMES, types, st.booleans())
    by_name = st.lists(columns, min_size=1, max_size=3).map(lambda found: {each.name.lower(): each for each in found})
    return by_name.map(lambda found: list(found.values()))


TYPES: st.SearchStrategy[ColumnType] = st.recursive(
    st.sampled_from([Primitive(name) for name in set(PRIMITIVES.values())])
    | st.builds(lambda digits, after: Decimal(digits, min(after, digits)), st.integers(1, 38), st.integers(0, 38)),
    lambda inner: (
        st.builds(Array, inner)
        | st.builds(Map, inner, inner)
        | tables_of(inner).map(lambda fields: Struct(tuple(fields)))
    ),
    max_leaves=8,
)


@given(tables_of(TYPES))
def test_columns_written_as_ddl_are_read_back(columns: list[Column]) -> None:
    assert parse_ddl(columns_ddl(tuple(columns))) == tuple(columns)


@given(st.text(string.ascii_letters + string.digits + " ,<>():`'\n-", max_size=40))
def test_no_ddl_crashes(text: str) -> None:
    place = (1, 1)
    try:
        parse_ddl(text)
    except DdlError as error:
        place = (error.line, error.column)
    assert (1, 1) <= place <= (text.count("\n") + 1, len(text) + 1)


def test_words_of_ddl_are_read_as_spark_reads_them() -> None:
    text = """
      a long, b integer NOT NULL COMMENT 'it''s', `c d` DECIMAL(12, 3), -- a comment
      e STRUCT<f: ARRAY<MAP<STRING, INT>>, g INT NOT NULL>, h dec, i VARCHAR(10)
    """.replace("''", "")
    assert columns_ddl(parse_ddl(text)) == (
        "a BIGINT, b INT NOT NULL, `c d` DECIMAL(12,3), "
        "e STRUCT<f: ARRAY<MAP<STRING, INT>>, g: INT NOT NULL>, h DECIMAL(10,0), i VARCHAR(10)"
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("", 1, 1, "the schema is empty"),
        ("a", 1, 2, "the column 'a' has no type"),
        ("a INT b INT", 1, 7, "unexpected 'b'"),
        ("a INT,\n  b STRNG", 2, 5, "'STRNG' is not a type"),
        ("a INT,", 1, 7, "expected a column name, found the end"),
        ("a ARRAY<INT", 1, 12, "expected '>' after the type of ARRAY's elements, found the end"),
        ("a MAP<INT>", 1, 10, "expected ',' after the type of MAP's keys, found '>'"),
        ("a STRUCT<b INT", 1, 15, "expected '>' after the fields of STRUCT, found the end"),
        ("a DECIMAL(40)", 1, 3, "DECIMAL(40,0) is out of range"),
        ("a DECIMAL(x)", 1, 11, "expected a number in DECIMAL, found 'x'"),
        ("a INT NOT", 1, 10, "expected 'NULL' after NOT, found the end"),
        ("a INT, A INT", 1, 8, "duplicate column 'A'"),
        ("a " + "ARRAY<" * 100 + "INT" + ">" * 100, 1, 369, "types are nested too deeply"),
    ],
)
def test_wrong_ddl_is_reported_where_it_is_wrong(text: str, line: int, column: int, said: str) -> None:
    with pytest.raises(DdlError) as caught:
        parse_ddl(text)
    assert said in caught.value.message
    assert (caught.value.line, caught.value.column) == (line, column)


def test_the_nearest_type_is_offered() -> None:
    with pytest.raises(DdlError) as caught:
        parse_ddl("a BIGNT")
    assert caught.value.hint == "did you mean 'BIGINT'?"


def test_an_avro_schema_gives_columns() -> None:
    schema = {
        "type": "record",
        "name": "Reading",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"]},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "cost", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A"]}},
            {"name": "again", "type": "Kind"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "more", "type": {"type": "map", "values": "double"}},
            {"name": "in", "type": {"type": "record", "name": "In", "fields": [{"name": "x", "type": "int"}]}},
        ],
    }
    assert columns_ddl(avro_columns(schema)) == (
        "id BIGINT NOT NULL, note STRING, at TIMESTAMP NOT NULL, cost DECIMAL(9,2) NOT NULL, kind STRING NOT NULL, "
        "again STRING NOT NULL, tags ARRAY<STRING> NOT NULL, more MAP<STRING, DOUBLE> NOT NULL, "
        "in STRUCT<x: INT NOT NULL> NOT NULL"
    )


@pytest.mark.parametrize(
    "schema",
    [
        "string",
        {"type": "record"},
        {"type": "record", "name": "A", "fields": [{"name": "a", "type": "lng"}]},
        {"type": "record", "name": "A", "fields": [{"name": "a", "type": ["null", "A"]}]},
        5,
        {},
    ],
)
def test_what_is_no_avro_schema_of_records_is_refused(schema: Any) -> None:
    with pytest.raises(AvroSchemaError):
        avro_columns(schema)


AVRO_TREES = st.recursive(
    st.none() | st.integers() | st.sampled_from(["record", "long", "null", "array", "map", "A", "decimal", "fixed"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | mappings(["type", "name", "fields", "items", "values", "logicalType", "precision", "size"], inner)
    ),
    max_leaves=15,
)


def test_avro_field_without_a_name_is_refused() -> None:
    with pytest.raises(AvroSchemaError, match="the name of a field must be a string"):
        avro_columns({"type": "record", "name": "A", "fields": [{"type": [], "name": None}]})


@given(
    st.fixed_dictionaries({"type": st.just("record"), "name": st.just("A"), "fields": st.lists(AVRO_TREES)})
    | AVRO_TREES
)
def test_no_avro_schema_crashes(schema: Any) -> None:
    try:
        said = columns_ddl(avro_columns(schema)) or "a record without fields"
    except AvroSchemaError as error:
        said = str(error)
    assert said


def validate(folder: Path, schema: str, encoding: str = "json") -> list[str]:
    (folder / "p.yml").write_text(
        f"pipeline: p\nsources:\n  s:\n    topic: t\n    format: {encoding}\n    schema: {schema}\n"
        "sinks: {o: {from: s, console: true}}\n"
    )
    definition = load_yaml(str(folder / "p.yml"), {})
    return [str(each).removeprefix(f"{folder}/") for each in definition.problems]


def test_schemas_come_from_files_beside_the_definition(tmp_path: Path) -> None:
    record = {"type": "record", "name": "A", "fields": [{"name": "a", "type": "long"}]}
    (tmp_path / "a.avsc").write_text(json.dumps(record))
    assert validate(tmp_path, "{file: a.avsc}", "avro") == []
    assert validate(tmp_path, json.dumps(record), "avro") == []


def test_wrong_files_of_schemas_are_reported(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{\n "a": ]')
    assert "cannot be read" in validate(tmp_path, "{file: nowhere.json}", "avro")[0]
    assert validate(tmp_path, "{file: broken.json}", "avro")[0].startswith(
        "broken.json:2:7: error: schema of source 's' is not JSON"
    )
    assert "must be an Avro schema" in validate(tmp_path, "a INT", "avro")[0]
    assert "invalid Avro schema" in validate(tmp_path, "{type: record}", "avro")[0]
    within = validate(tmp_path, "{avro: {type: record, name: A, fields: []}}", "avro")[0]
    assert within.endswith("; write the record itself, without avro:")
    assert "must be columns in DDL, not a list" in validate(tmp_path, "[a]")[0]
    assert "must be columns in DDL, not a mapping" in validate(tmp_path, "{file: a.json}")[0]


WRITERS = {
    1: {"type": "record", "name": "A", "fields": [{"name": "a", "type": "int"}]},
    2: {"type": "record", "name": "A", "fields": [{"name": "a", "type": "string"}]},
    3: {"type": "record", "name": "A", "fields": [{"name": "b", "type": "string"}, {"name": "a", "type": "int"}]},
}


def with_writers(folder: Path, writers: str) -> list[str]:
    record = {"type": "record", "name": "A", "fields": [{"name": "a", "type": "long"}]}
    for number, schema in WRITERS.items():
        (folder / f"v{number}.avsc").write_text(json.dumps(schema))
    return validate(folder, f"{json.dumps(record)}\n    {writers}", "avro")


def test_writers_have_schemas_by_id(tmp_path: Path) -> None:
    inline = json.dumps(WRITERS[1])
    assert with_writers(tmp_path, f"writer_schemas: {{1: v1.avsc, 3: {{file: v3.avsc}}, 7: {inline}}}") == []
    schema = load_yaml(str(tmp_path / "p.yml"), {}).require().sources[0].format.schema
    assert schema is not None
    assert schema.writers is not None
    assert json.loads(schema.writers[3]) == WRITERS[3]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "writer_schemas: {one: v1.avsc}",
            "'one' in writer_schemas of source 's' is not a schema id; write 1: v1.avsc",
        ),
        (
            "writer_schemas: [v1.avsc]",
            (
                "writer_schemas of source 's' must be a mapping of ids to schemas, not a list; write writer_schemas: "
                "{1: v1.avsc, 2: v2.avsc}"
            ),
        ),
        (
            "writer_schemas: {1: 5}",
            "schema 1 in writer_schemas of source 's' must be an Avro schema, not the number 5; name its file: v1.avsc",
        ),
        (
            "writer_schemas: {1: {type: int}}",
            "schema 1 in writer_schemas of source 's': the schema is not a record: its type must be 'record'",
        ),
    ],
)
def test_wrong_writers_are_reported(tmp_path: Path, text: str, expected: str) -> None:
    (line,) = with_writers(tmp_path, text)
    assert line.partition(": error: ")[2].startswith(expected)


def test_writers_belong_to_avro(tmp_path: Path) -> None:
    (line,) = validate(tmp_path, "a INT\n    writer_schemas: {1: v1.avsc}")
    assert line.endswith("writer_schemas of source 's' applies to format: avro, not to json")
