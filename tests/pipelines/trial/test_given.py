"""Given rows as records of a topic."""

from __future__ import annotations

import json

from odradek.pipelines.definition.avro import avro_columns
from odradek.pipelines.definition.model import RecordFormat, RecordSchema, Source, TopicOrigin
from odradek.pipelines.definition.places import NOWHERE, Problems
from odradek.pipelines.definition.vocabulary import Encoding
from odradek.pipelines.spark.reading.records import AvroFormat
from odradek.pipelines.trial.given import records_of
from odradek.pipelines.trial.model import PlacedValue


def test_avro_is_written_with_the_schema_of_the_highest_id() -> None:
    text = json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]})
    old = json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]})
    schema = RecordSchema(avro_columns(json.loads(text)), text, writers={2: old, 1: text})
    origin = TopicOrigin(("t",))
    source = Source("s", origin, RecordFormat(Encoding.AVRO, schema))
    problems = Problems()
    (record,) = records_of([PlacedValue({"a": 5}, NOWHERE)], source, origin, problems)
    assert not problems.errors
    assert record.value == b"\0\0\0\0\2\x0a"
    assert AvroFormat(text, schema.writers).decode(record.value) == ({"a": 5}, None)
