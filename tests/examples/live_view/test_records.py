"""Parsing of records in topics to which any client may write."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.examples.live_view.model import LiveViewModel
from odradek.examples.live_view.records import LONGEST_TEXT, UNKNOWN, SeenRecord, text_of
from tests.examples.live_view.seen import BEGAN_S, RIGS


def test_a_warning_as_spark_writes_it() -> None:
    value = (
        b'{"hcid":20,"rule":"pressure high","value":155.0,"bound":150.0,'
        b'"event_time":"2027-01-15T08:00:00.000Z","reported_at":"2027-01-15T08:00:00.643Z"}'
    )
    record = SeenRecord("warnings", b"20", value, {})
    assert (record.text("hcid"), record.text("rule"), record.number("value")) == ("20", "pressure high", 155.0)
    assert record.time_s("reported_at") == 1_800_000_000.643


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["hcid", "rule", "value", "bound", "reported_at", "x"]), inner, max_size=6)
    ),
)


@given(
    topic=st.sampled_from(RIGS.topics),
    key=st.none() | st.binary(max_size=8),
    value=st.none() | st.binary(max_size=40) | JSON.map(lambda v: json.dumps(v).encode()),
    headers=st.dictionaries(st.sampled_from(["source", "reason", "x"]), st.none() | st.binary(max_size=9)),
)
@settings(max_examples=60, deadline=None)
def test_any_record_is_taken(
    topic: str, key: bytes | None, value: bytes | None, headers: dict[str, bytes | None]
) -> None:
    model = LiveViewModel(RIGS, BEGAN_S)
    model.take_ends(BEGAN_S, {"rigs": {0: 1}})
    model.take(BEGAN_S, SeenRecord(topic, key, value, headers))
    assert all(name.isprintable() for table in model.tables.values() for name in table.counts)


def test_deep_json_has_no_columns() -> None:
    assert SeenRecord("t", b"7", b"[" * 100_000, {}).columns == {}


@pytest.mark.parametrize(
    ("headers", "source"),
    [
        ({"source": b"2:1047"}, (2, 1047)),
        ({"source": b"2:"}, None),
        ({"source": b"-1:5"}, None),
        ({"source": b"two:5"}, None),
        ({"odradek-partition": b"1", "odradek-offset": b"9"}, (1, 9)),
        ({"odradek-offset": b"9"}, None),
        ({"source": b"1:" + b"9" * 40}, None),
        ({}, None),
    ],
)
def test_where_an_output_comes_from(headers: dict[str, bytes], source: tuple[int, int] | None) -> None:
    assert SeenRecord("t", None, None, headers).source == source


def test_the_reason_is_what_stands_before_the_colon() -> None:
    headers = {"odradek-reason": b"plausible pressure: null is not between 0 and 400"}
    assert SeenRecord("t", None, None, headers).reason("reason") == "plausible pressure"
    assert SeenRecord("t", None, None, {"reason": b" "}).reason("reason") == UNKNOWN
    assert SeenRecord("t", None, None, {}).reason("reason") == UNKNOWN


@given(st.binary() | st.text())
def test_text_is_one_short_printable_line(value: bytes | str) -> None:
    text = text_of(value)
    assert text.isprintable()
    assert len(text) <= LONGEST_TEXT
