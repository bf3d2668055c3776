"""Timers in the batch engine."""

from __future__ import annotations

from tests.pipelines.definition.definitions import define


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
