"""Expectations of static steps: `quarantine` is for streams and for the batch engine."""

from __future__ import annotations

import pytest

from tests.pipelines.definition.definitions import reported_for

HEAD = """
pipeline: p
engine: {engine}
dead_letters: dead
sources:
  pay: {{topic: pay, schema: "customer BIGINT"}}
  customers: {{files: {{path: c.csv, format: csv}}, schema: "customer BIGINT, city STRING"}}
"""
TEXT = """
steps:
  ok: {{sql: select * from customers, expect: {{city: {{check: city is not null, otherwise: {otherwise}}}}}}}
  joined: {{from: pay, join: {{table: ok, on: [customer]}}}}
sinks: {{o: {{from: joined, topic: o}}}}
"""


@pytest.mark.parametrize(("engine", "is_refused"), [("standard", True), ("batch", False)])
def test_a_static_step_that_quarantines_is_refused_on_streams(engine: str, is_refused: bool) -> None:
    found = reported_for(TEXT.format(otherwise="quarantine"), head=HEAD.format(engine=engine))
    text = "expectation 'city' of step 'ok' quarantines rows of a static table"
    assert [text in line for line in found if line.startswith("error")] == [True] * is_refused
    assert not [line for line in reported_for(TEXT.format(otherwise="drop"), head=HEAD.format(engine=engine))
                if line.startswith("error")]  # fmt: skip
