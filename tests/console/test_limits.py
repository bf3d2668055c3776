"""Hostile and large records cost a bounded amount of memory, and an export that is cut off does not look complete."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

import pytest

from odradek.cli.log import dump
from odradek.cli.records import formats
from odradek.console.cluster import feeds, records
from odradek.console.cluster.feeds import KEPT_BYTES, Feed
from odradek.console.records import record
from odradek.console.records.record import NewestRecords, Record
from odradek.console.views.records import FULL_CHARACTERS, decode
from odradek.conventions.failures import Failure
from tests.memory import memory_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.console.conftest import Visitor

MIB = 1024 * 1024


def new_record(offset: int = 0, value: bytes = b"", headers: tuple[tuple[str, bytes | None], ...] = ()) -> Record:
    return Record("t", 0, offset, 0, None, value, headers)


@pytest.mark.parametrize(
    "value",
    [
        b"[" * 180 + b",".join([b"1"] * 100_000) + b"]" * 180,
        b'{"a":' * 150 + b"[" + b",".join([b"[]"] * 100_000) + b"]" + b"}" * 150,
    ],
)
def test_indented_json_is_bounded_while_it_is_built(value: bytes) -> None:
    def show() -> None:
        shown = decode(value)
        assert shown.kind == "json"
        assert len(shown.text) < FULL_CHARACTERS + 100
        assert "cut after 200,000 characters" in shown.text

    assert memory_of(show).peak_bytes < 16 * MIB


def test_the_size_of_a_record_includes_its_headers() -> None:
    assert new_record(0, b"vv", (("name", b"12345"), ("no value", None))).size_bytes == 2 + 4 + 5 + 8


def test_a_feed_counts_the_bytes_of_headers() -> None:
    feed = Feed(500)
    feed.add(100, [new_record(n, b"", (("h", bytes(MIB)),)) for n in range(100)])
    assert sum(each.size_bytes for each in feed.take().records) <= KEPT_BYTES


def test_the_matches_of_a_search_are_bounded_in_bytes() -> None:
    kept = NewestRecords(500, 4 * MIB)
    kept.add(new_record(n, bytes(MIB)) for n in range(10))
    assert [each.offset for each in kept.records] == [6, 7, 8, 9]
    assert kept.dropped == 6
    kept = NewestRecords(3, MIB)
    kept.add(new_record(n) for n in range(5))
    assert [each.offset for each in kept.records] == [2, 3, 4]


def test_one_function_writes_bytes_as_text() -> None:
    assert len({vars(module)["text_fields"] for module in (record, formats, dump)}) == 1


def test_an_export_that_fails_is_cut_off(
    visitor: Visitor, topic: str, produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(topic, "a", "b", partition=0)

    def broken(*_arguments: Any) -> Any:
        yield [new_record(0, b"first")]
        raise Failure("the disk of the broker failed")

    monkeypatch.setattr("odradek.console.cluster.records.scan", broken)
    with pytest.raises(http.client.IncompleteRead) as cut:
        visitor.get(f"/topics/{topic}/export?start=oldest")
    lines = [json.loads(line) for line in cut.value.partial.splitlines()]
    assert lines[0]["value"] == "first"
    assert lines[-1] == {"incomplete": "the disk of the broker failed", "records": 1}


@pytest.mark.parametrize("limit", ["EXPORT_RECORDS", "EXPORT_BYTES"])
def test_an_export_that_reaches_a_limit_says_so_in_its_last_line(
    visitor: Visitor, topic: str, produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    produce(topic, *[f"{n:0200}" for n in range(5)], partition=0)
    whole = visitor.get(f"/topics/{topic}/export?start=oldest")
    assert len(whole.body.splitlines()) == 5
    assert b"incomplete" not in whole.body
    monkeypatch.setattr(feeds, limit, 3 if limit == "EXPORT_RECORDS" else 700)
    lines = [json.loads(line) for line in visitor.get(f"/topics/{topic}/export?start=oldest").body.splitlines()]
    assert lines[-1]["records"] == len(lines) - 1 < 5
    assert "limit" in lines[-1]["incomplete"]


def test_an_export_whose_records_stop_coming_is_cut_off(
    visitor: Visitor, topic: str, produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader gives up after a time without records; what it has not read is missing."""
    from odradek.admin.records.record_reader import RecordReader

    produce(topic, "a", partition=0)
    monkeypatch.setattr(RecordReader, "batches", lambda _self: iter([]))
    with pytest.raises(http.client.IncompleteRead) as cut:
        visitor.get(f"/topics/{topic}/export?start=oldest")
    assert b"sent no records" in cut.value.partial


def test_copies_of_records_are_bounded_in_bytes(
    visitor: Visitor, topic: str, produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(topic, "x" * 600, "y" * 600, partition=0)
    monkeypatch.setattr(records, "REPLAY_BYTES", 1000)
    answer = visitor.post(f"/topics/{topic}/replay", [("record", "0:0"), ("record", "0:1"), ("target", topic)])
    assert "larger than" in answer.text
