"""Avro's rules of resolution: schema evolutions with known results."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings

from odradek.pipelines.definition.avro import record_reader
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
    ("writer", "reader", "value", "reason"),
    [
        ("string", "long", "a", "Schema mismatch: string is not long"),
        (["null", "long"], "long", None, "schema mismatch"),
        (
            {"type": "enum", "name": "e", "symbols": ["A", "B"]},
            {"type": "enum", "name": "e", "symbols": ["A"]},
            "B",
            "B not found in reader symbol list e",
        ),
        ({"type": "long", "logicalType": "timestamp-millis"}, "long", 5, "is of another type than in schema"),
        (DECIMAL, {**DECIMAL, "scale": 3}, Decimal("1.25"), "a decimal of another scale than 3"),
    ],
)
def test_a_value_that_the_reader_does_not_have_is_refused(writer: Any, reader: Any, value: Any, reason: str) -> None:
    with pytest.raises(Exception, match=reason):
        read_as(writer, reader, value)
