"""The choice of a connector, and the engines that support it."""

from __future__ import annotations

from odradek.pipelines.definition.model import TopicOrigin
from odradek.pipelines.definition.sql_text import parse_query
from odradek.pipelines.definition.vocabulary import Connector, OnDataLoss
from tests.pipelines.definition.definitions import define

ENDS = """
sources: {a: {topic: a, schema: id BIGINT, on_data_loss: skip}}
sinks: {x: {from: a, topic: x}}
"""


def test_the_connector_is_chosen_by_a_word_or_not_at_all() -> None:
    for line, expected in (("", None), ("connector: jvm", Connector.JVM), ("connector: python", Connector.PYTHON)):
        found = define(f"pipeline: p\n{line}\n{ENDS}")
        assert found.is_sound, found.problems
        assert found.pipeline is not None
        assert found.pipeline.connector is expected
        origin = found.pipeline.sources[0].origin
        assert isinstance(origin, TopicOrigin)
        assert origin.on_data_loss is OnDataLoss.SKIP


def test_another_word_is_reported() -> None:
    (problem,) = define(f"pipeline: p\nconnector: pyton\n{ENDS}").problems
    assert "connector of the pipeline cannot be 'pyton'" in problem.message
    assert "python" in problem.hint


def test_the_realtime_engine_refuses_the_python_connector() -> None:
    (problem,) = define(f"pipeline: p\nengine: realtime\nconnector: python\n{ENDS}").problems
    assert "the realtime engine cannot use the Python connector" in problem.message
    assert define(f"pipeline: p\nengine: realtime\nconnector: jvm\n{ENDS}").problems == ()


def test_timers_in_a_batch_are_warned_of() -> None:
    text = """
pipeline: p
engine: batch
sources: {a: {topic: a, schema: id BIGINT}}
steps: {s: {from: a, state: {key: [id], processor: "json:JSONDecoder"TIMEOUT}, schema: id BIGINT}}
sinks: {x: {from: s, topic: x}}
"""
    for timers in ", timeout: 1 s", ", clock: event":
        found = define(text.replace("TIMEOUT", timers))
        assert found.is_sound
        assert [each.message for each in found.problems] == [
            "the timers of step 's' do not fire in the batch engine, which ends after the last row"
        ]
    assert define(text.replace("TIMEOUT", "")).problems == ()


def test_a_doubled_quote_stands_for_one() -> None:
    (text,) = parse_query("select 'it''s' as x from t").expressions
    assert text.this.this == "it's"
