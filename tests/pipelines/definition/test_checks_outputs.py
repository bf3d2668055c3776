"""Sinks and views that write the same folder or the same rows of a table."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.vocabulary import Engine
from tests.pipelines.definition.definitions import reported_for

HEAD = """
pipeline: p
sources:
  a: {topic: a, schema: "id BIGINT, x BIGINT"}
  b: {topic: b, schema: "id BIGINT, x BIGINT"}
"""


def errors(ends: str, engine: Engine | None = None) -> list[str]:
    return [each for each in reported_for(ends, head=HEAD, engine=engine) if each.startswith("error")]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("sinks: {o: {from: a, files: {path: x, format: json}}, q: {from: b, files: {path: ./x/, format: parquet}}}",
         "sink 'q' writes the folder of sink 'o'"),
        ("sinks: {o: {from: a, table: t, key: [id]}, q: {from: b, table: T, key: [id]}}",
         "sink 'q' writes the table of sink 'o'"),
        ("sinks: {o: {from: a, table: t}, q: {from: b, table: t, changes: {key: [id], sequence: x}}}",
         "sink 'q' writes the table of sink 'o'"),
        ("sinks: {o: {from: a, table: t, key: [id], order_by: x}, q: {from: b, table: t, key: [id]}}",
         "sink 'q' writes the table of sink 'o'"),
        ("sinks: {o: {from: a, table: v}}\nviews: {v: {from: b, key: [id]}}", "view 'v' writes the table of sink 'o'"),
    ],
)  # fmt: skip
def test_two_outputs_do_not_write_the_same_rows(ends: str, said: str) -> None:
    found = errors(ends)
    assert [line for line in found if said in line and "; use another" in line], found
    assert errors(ends, Engine.BATCH) == []


@pytest.mark.parametrize(
    "ends",
    [
        "sinks: {o: {from: a, files: {path: x, format: json}}, q: {from: a, files: {path: y, format: json}}}",
        "sinks: {o: {from: a, table: t}, q: {from: b, table: t}}",
        "sinks: {o: {from: a, table: t, key: [id], order_by: x}, q: {from: b, table: t, key: [id], order_by: x}}",
        "sinks: {o: {from: a, table: t, key: [id]}, q: {from: b, table: t, key: [id], url: 'sqlite:///other.db'}}",
        "sinks: {o: {from: a, table: t}, q: {from: b, topic: t}}\nviews: {o: {from: b, key: [id]}}",
    ],
)
def test_outputs_of_different_rows_are_accepted(ends: str) -> None:
    assert errors(ends) == []
