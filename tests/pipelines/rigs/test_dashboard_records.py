"""Parsing of records in topics to which any client may write."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipelines.rigs.dashboard_records import (
    LONGEST_TEXT,
    UNKNOWN_REASON,
    WarningRecord,
    read_headers,
    read_reason,
    read_source,
    read_warning,
    text_of,
)


def test_a_warning_as_spark_writes_it() -> None:
    value = (
        b'{"hcid":20,"rule":"pressure high","value":155.0,"bound":150.0,'
        b'"event_time":"2027-01-15T08:00:00.000Z","reported_at":"2027-01-15T08:00:00.643Z"}'
    )
    assert read_warning(b"20", value) == WarningRecord("20", "pressure high", 155.0, 150.0, 1_800_000_000.643)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["hcid", "rule", "value", "bound", "reported_at", "x"]), inner, max_size=6)
    ),
)


@given(
    key=st.none() | st.binary(max_size=8),
    value=st.none() | st.binary(max_size=40) | JSON.map(lambda v: json.dumps(v).encode()),
)
def test_anything_is_read_as_some_warning(key: bytes | None, value: bytes | None) -> None:
    warned = read_warning(key, value)
    assert warned.pump.isprintable()
    assert warned.rule.isprintable()


def test_deep_json_is_no_warning() -> None:
    assert read_warning(b"7", b"[" * 100_000) == WarningRecord("7", "not a warning")


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
    assert read_source(read_headers(headers)) == source


def test_the_reason_is_what_stands_before_the_colon() -> None:
    assert read_reason(read_headers({"odradek-reason": b"plausible pressure: null is not between 0 and 400"})) == (
        "plausible pressure"
    )
    assert read_reason({}) == read_reason({"reason": " "}) == UNKNOWN_REASON


@given(st.binary() | st.text())
def test_text_is_one_short_printable_line(value: bytes | str) -> None:
    text = text_of(value)
    assert text.isprintable()
    assert len(text) <= LONGEST_TEXT
