"""Avro's rules of resolution: schema evolutions with known results."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings

from odradek.pipelines.definition.avro import parsed, record_reader, resolution_error, samples
from tests.pipelines.definition.avro_evolutions import evolved_records


def encoded(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, value)
    return stream.getvalue()


def resolved(writer: Any, reader: Any, value: bytes) -> Any:
    return record_reader(writer, reader)(io.BytesIO(value))


def record(*fields: Any, name: str = "r", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def read_as(writer: Any, reader: Any, value: Any) -> Any:
    """The field `a`, written with one type and read with another."""
    written, read = record(field("a", writer)), record(field("a", reader))
    return resolved(written, read, encoded(written, {"a": value}))["a"]


@settings(max_examples=200, deadline=None)
@given(evolved_records())
def test_every_evolution_is_read_as_it_must_be(case: tuple[Any, Any, Any, Any]) -> None:
    writer, reader, written, expected = case
    assert resolution_error(writer, reader) is None
    assert resolved(writer, reader, encoded(writer, written)) == expected


def test_a_missing_field_takes_the_default_of_its_type() -> None:
    writer = record(field("a", "int"))
    meter = record(field("unit", "string", default="bar"), field("n", "int"), name="meter")
    reader = record(
        field("note", ["null", "string"], default=None),
        field("data", "bytes", default="\u00ff"),
        field("at", {"type": "long", "logicalType": "timestamp-millis"}, default=1000),
        field("price", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, default="\u0001\u0000"),
        field("meter", meter, default={"n": 2}),
        field("tags", {"type": "array", "items": "string"}, default=["x"]),
        field("ratio", "double", default=1),
    )
    assert resolved(writer, reader, encoded(writer, {"a": 1})) == {
        "note": None,
        "data": b"\xff",
        "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        "price": Decimal("2.56"),
        "meter": {"unit": "bar", "n": 2},
        "tags": ["x"],
        "ratio": 1.0,
    }


def test_a_named_type_may_be_defined_in_another_field() -> None:
    meter = record(field("unit", "string"), name="meter")
    writer = record(field("a", meter), field("b", "meter"))
    reader = record(field("b", {**meter, "aliases": ["gauge"]}), field("a", "meter"))
    value = encoded(writer, {"a": {"unit": "bar"}, "b": {"unit": "psi"}})
    assert resolved(writer, reader, value) == {"b": {"unit": "psi"}, "a": {"unit": "bar"}}


def test_fields_that_are_not_read_may_have_any_type() -> None:
    node = record(field("next", ["null", "node"]), name="node")
    writer = record(field("a", "int"), field("either", ["string", "long", node]), field("more", "node"))
    reader = record(field("a", "long"))
    assert resolution_error(writer, reader) is None
    assert resolved(writer, reader, encoded(writer, {"a": 1, "either": 2, "more": {"next": None}})) == {"a": 1}


def test_logical_types_are_those_of_the_writer_or_else_of_the_reader() -> None:
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    day = {"type": "int", "logicalType": "date"}
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert read_as(millis, micros, moment) == moment
    assert read_as("long", millis, int(moment.timestamp() * 1000)) == moment
    assert read_as(day, day, date(2026, 1, 2)) == read_as("int", day, 20_455) == date(2026, 1, 2)
    assert read_as({"type": "int", "logicalType": "time-millis"}, "int", 5) == 5


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}


@pytest.mark.parametrize(
    ("writer", "reader", "reason"),
    [
        ("string", "long", "Schema mismatch: string is not long"),
        ("long", "int", "Schema mismatch: long is not int"),
        (["null", "string"], ["null", "int"], "chema mismatch"),
        (["null", "long"], "long", "schema mismatch: ['null', 'long'] not found in long"),
        ({"type": "array", "items": "string"}, {"type": "array", "items": "int"}, "Schema mismatch"),
        (
            {"type": "enum", "name": "e", "symbols": ["A", "B"]},
            {"type": "enum", "name": "e", "symbols": ["A"]},
            "B not found in reader symbol list e",
        ),
        ({"type": "long", "logicalType": "timestamp-millis"}, "long", "is of another type than in schema"),
        (DECIMAL, {**DECIMAL, "scale": 3}, "a decimal of another scale than 3"),
    ],
)
def test_schemas_that_do_not_fit_are_refused(writer: Any, reader: Any, reason: str) -> None:
    found = resolution_error(record(field("a", writer)), record(field("a", reader)))
    assert reason in (found or "")


def test_a_new_field_without_a_default_is_refused() -> None:
    found = resolution_error(record(field("a", "int")), record(field("b", "int")))
    assert "No default value for field b" in (found or "")


def test_each_symbol_of_an_enum_in_a_union_is_tried() -> None:
    def either(*symbols: str) -> Any:
        return record(field("a", ["null", {"type": "enum", "name": "e", "symbols": symbols}]))

    assert "C not found in reader symbol list e" in (resolution_error(either("A", "B", "C"), either("A", "B")) or "")
    nested = record(field("n", ["null", record(field("a", "int"), field("b", ["null", "long"]), name="i")]))
    fewer = record(field("n", ["null", record(field("a", "int"), field("b", ["null", "int"]), name="i")]))
    assert "mismatch" in (resolution_error(nested, fewer) or "")


@pytest.mark.parametrize(
    "kinds",
    [
        {"N": ["null", "N"]},
        {"N": ["null", "M"], "M": "N"},
        {"N": ["M", "string"], "M": ["N", "K"], "K": {"type": "array", "items": "M"}},
        {"N": "N"},  # has no values
    ],
)
def test_recursive_types_end_at_their_second_level(kinds: dict[str, Any]) -> None:
    def defined(kind: Any) -> Any:
        if isinstance(kind, list):
            return [*map(defined, kind)]
        if isinstance(kind, dict):
            return {**kind, "items": defined(kind["items"])}
        if kind not in kinds or kind in found:
            return kind
        found.add(kind)
        return record(*(field(each, defined(kinds[kind])) for each in "ab"), name=kind)

    found: set[str] = set()
    named: dict[str, Any] = {}
    tree = parsed(defined("N"), named)
    values = samples(tree, named)
    assert len(values) <= len(kinds) * 4
    assert all(len(f"{each}") < 1000 for each in values)
    assert bool(values) == (kinds != {"N": "N"})
    for each in values:
        assert encoded(tree, each)


def test_both_levels_of_a_tree_are_tried() -> None:
    tree = record(field("left", ["null", "N"]), field("right", ["null", "N"]), name="N")
    named: dict[str, Any] = {}
    leaf = {"left": ("null", None), "right": ("null", None)}
    assert samples(parsed(tree, named), named) == [leaf, {"left": ("N", leaf), "right": ("N", leaf)}]


def test_a_reason_names_records_without_the_keys_of_fastavro() -> None:
    found = resolution_error(record(field("a", "int"), name="r"), record(field("a", "int"), name="q"))
    assert found == "Schema mismatch: r is not q"
