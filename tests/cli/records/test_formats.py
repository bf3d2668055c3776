"""Format strings: what they mean, and that what one direction writes the other can read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.cli.records.formats import FormatError, InputError, InputRecord, line_reader, parse_format


def test_literals_are_joined_and_verbs_stand_alone() -> None:
    assert parse_format(r"a%%b\t%k\x41\\%v", "kv") == [b"a%b\t", "k", b"A\\", "v"]


@pytest.mark.parametrize("text", ["%q", "%", "\\", r"\q", r"%v\x4"])
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        parse_format(text, "kv")


@given(st.binary(min_size=1).filter(lambda data: not {*b"%\\"} & {*data}))
def test_plain_text_means_itself_byte_for_byte(data: bytes) -> None:
    """A shell may hand over any bytes; Python decodes them with `surrogateescape`."""
    assert parse_format(data.decode(errors="surrogateescape"), "kv") == [data]


plain = st.binary().filter(lambda value: b"|" not in value and b"\n" not in value)


@given(key=plain, value=st.binary())
def test_a_line_is_split_at_the_first_separator(key: bytes, value: bytes) -> None:
    assert line_reader("%k|%v")(key + b"|" + value) == InputRecord(key=key, value=value)


@given(st.binary())
def test_the_default_takes_the_whole_line(line: bytes) -> None:
    assert line_reader("%v")(line) == InputRecord(value=line)


@pytest.mark.parametrize("line", [b"", b"no separator", b"k1|v|not a time"])
def test_a_line_that_does_not_fit_is_refused(line: bytes) -> None:
    with pytest.raises(InputError):
        line_reader("%k|%v|%T")(line)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{", "it is not JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"valeu": 1}', "'valeu' is not a field"),
        (b'{"value": "x", "value_encoding": "base64"}', "is not base64"),
        (b'{"value": "x", "value_encoding": "rot13"}', "'rot13' is not an encoding"),
        (b'{"value": "x", "partition": -1}', "-1 is not a partition"),
        (b'{"value": "x", "partition": "0"}', '"0" is not a partition'),
        (b'{"value": "x", "timestamp": "noon"}', "'noon' is not a time"),
        (b'{"value": "x", "headers": 7}', "headers are"),
        (b'{"value": "x", "headers": [{"value": "no key"}]}', "headers are"),
    ],
)
def test_a_json_line_that_is_no_record_says_why(line: bytes, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        line_reader("json")(line)


def test_a_json_line_with_everything() -> None:
    line = b'{"key": "AA==", "key_encoding": "base64", "value": null, "headers": [{"key": "a", "value": null}],'
    record = line_reader("json")(line + b'"partition": 3, "timestamp": 5, "topic": "t", "offset": 9}')
    assert record == InputRecord(value=None, key=b"\0", headers=[("a", None)], partition=3, timestamp_ms=5)
