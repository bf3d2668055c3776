"""What the realtime engine refuses besides the constructs of docs/rules/12-realtime.md."""

from __future__ import annotations

import pytest

from tests.pipelines.definition.definitions import reported


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (
            "format: avro, schema: {type: record, name: b, fields: [{name: n, type: long}]}",
            "it has Avro, which is decoded in Python",
        ),
        (
            "schema: n BIGINT, max_records_per_batch: 5",
            "it has max_records_per_batch, and records have no batches",
        ),
    ],
)
def test_records_that_real_time_mode_cannot_read_are_refused(keys: str, reason: str) -> None:
    text = f"pipeline: p\nengine: realtime\nsources: {{s: {{topic: t, {keys}}}}}\nsinks: {{o: {{from: s, topic: o}}}}\n"
    assert reported(text) == [
        f"3:11: error OP018: the realtime engine does not run source 's': {reason}; use engine: standard"
    ]
