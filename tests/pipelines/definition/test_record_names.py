"""Columns of Kafka records that a definition names are written; a sink is not left without columns."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.model import RECORD_COLUMNS
from odradek.pipelines.definition.record_names import names_records
from odradek.pipelines.definition.sql_text import parse_query
from tests.pipelines.definition.definitions import reported

ALL = ", ".join(each.name for each in RECORD_COLUMNS)


@pytest.mark.parametrize(
    ("sql", "is_named"),
    [
        (f"select {ALL} from s", True),
        (f"select {ALL}, amount from s", True),
        (f"select {ALL} from s union all select {ALL} from r", True),
        (f"select * from (select {ALL} from s) t", True),
        (f"with t as (select {ALL} from s) select * from t", True),
        (f"with named as (select * from s) select *, '{ALL}' from named", False),
        ("select * from s", False),
        ("select *, amount from s", False),
        ("select * from named", True),
        ("select amount from named", False),
        (f"select {ALL.replace('_offset', '_offset as at')} from s", False),
    ],
)
def test_a_query_names_all_columns_of_records(sql: str, is_named: bool) -> None:
    assert names_records(parse_query(sql), ["named"]) is is_named


@pytest.mark.parametrize(
    ("steps", "end", "is_refused"),
    [
        ("", "o: {from: raw, table: o}", True),
        ("", "o: {from: raw, topic: o, format: bytes, value: [_value]}", False),
        ("", "o: {from: raw, topic: o}", True),
        ("steps: {s: {sql: select * from raw}}", "o: {from: s, table: o}", True),
        ("steps: {s: {sql: 'select *, 1 as one from raw'}}", "o: {from: s, table: o}", False),
        (f"steps: {{s: {{sql: 'select {ALL} from raw'}}}}", "o: {from: s, table: o}", False),
        (
            f"steps: {{s: {{sql: 'select {ALL} from raw'}}, u: {{from: s, deduplicate: {{key: [_key]}}}}}}",
            "o: {from: u, table: o}",
            False,
        ),
    ],
)
def test_a_sink_has_columns(steps: str, end: str, is_refused: bool) -> None:
    text = f"pipeline: p\nsources: {{raw: {{topic: t, format: bytes}}}}\n{steps}\nsinks: {{{end}}}\n"
    found = [line for line in reported(text) if "has the columns of its records only" in line]
    assert bool(found) is is_refused, reported(text)
