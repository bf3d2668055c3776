"""`odradek produce`, on a real cluster: what is written, where, and what is said about it."""

from __future__ import annotations

import errno
import time
from typing import TYPE_CHECKING, Any

import pytest

from odradek.admin.cluster import Cluster
from odradek.cli.main import run
from odradek.cli.records import produce
from odradek.cli.records.formats import InputRecord
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.commands import Run


def records(odradek: Run, topic: str) -> list[dict[str, Any]]:
    """What the topic holds, by partition and offset."""
    rows = odradek("consume", topic, "--until-end", "--format", "json").rows
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def test_one_record_with_everything(odradek: Run, topic: str) -> None:
    ran = odradek(
        "produce", topic, "--key", "k", "--value", "v", "--header", "a=1", "--header", "b=x=y", "--partition", "1",
        "--timestamp", "2020-01-02T03:04:05.678Z",
    )  # fmt: skip
    assert (ran.code, ran.output, ran.errors) == (0, f"1 record written to {topic}: partition 1, offset 0\n", "")
    (row,) = records(odradek, topic)
    assert row == {
        "topic": topic,
        "partition": 1,
        "offset": 0,
        "timestamp": 1577934245678,
        "timestamp_type": "create_time",
        "key": "k",
        "value": "v",
        "headers": [{"key": "a", "value": "1"}, {"key": "b", "value": "x=y"}],
    }


def test_a_line_is_a_record_and_its_bytes_are_kept(odradek: Run, topic: str) -> None:
    ran = odradek("produce", topic, "-p", "0", stdin=b"one\n\n\xff\xfe\nlast without newline")
    assert ran.output == f"4 records written to {topic}: partition 0, offsets 0–3\n"
    rows = records(odradek, topic)
    assert [row["value"] for row in rows] == ["one", "", "//4=", "last without newline"]
    assert rows[2]["value_encoding"] == "base64"


def test_summary_as_json(odradek: Run, topic: str) -> None:
    row = odradek("produce", topic, "-p", "1", "--format", "json", stdin="a\nbc\n").row
    place = {"partition": 1, "first_offset": 0, "last_offset": 1, "records": 2}
    assert row == {"topic": topic, "records": 2, "bytes": 3, "partitions": [place], "failed": 0, "topic_created": False}


def test_nothing_in_nothing_out(odradek: Run, topic: str) -> None:
    assert odradek("produce", topic, stdin="").output == f"0 records written to {topic}\n"


def test_a_file(odradek: Run, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("".join(f"{number}\n" for number in range(5000)))
    assert odradek("produce", topic, "--file", str(path), "--format", "json").row["records"] == 5000
    assert {row["value"] for row in records(odradek, topic)} == {str(number) for number in range(5000)}


def test_key_separator_splits_at_the_first(odradek: Run, topic: str) -> None:
    odradek("produce", topic, "-p", "0", "--key-separator", ":", stdin="a:1:2\n:3\n")
    assert [(row["key"], row["value"]) for row in records(odradek, topic)] == [("a", "1:2"), ("", "3")]


def test_input_format_with_every_verb(odradek: Run, topic: str) -> None:
    line = "1|1577934245678|a=1,b|key|value|with|bars\n"
    ran = odradek("produce", topic, "-f", "%p|%T|%h|%k|%v", stdin=line)
    assert ran.code == 0, ran.errors
    (row,) = records(odradek, topic)
    assert (row["partition"], row["timestamp"], row["key"], row["value"]) == (
        1,
        1577934245678,
        "key",
        "value|with|bars",
    )
    assert row["headers"] == [{"key": "a", "value": "1"}, {"key": "b", "value": None}]


def test_what_consume_writes_as_json_produce_reads(odradek: Run, topic: str, new_name: Any) -> None:
    odradek("produce", topic, "-k", "k", "-v", "text", "-H", "h=1", "-p", "1", "-T", "1577934245678")
    odradek("produce", topic, "-p", "1", stdin=b"\xff\x00\n")
    odradek("produce", topic, "-p", "1", "-k", "gone", "--null-value")
    copy = new_name()
    odradek("topic", "create", copy, "-p", "2")
    dumped = odradek("consume", topic, "--until-end", "--format", "json").output
    assert odradek("produce", copy, "-f", "json", stdin=dumped).code == 0
    assert [{**row, "topic": topic} for row in records(odradek, copy)] == records(odradek, topic)


def test_json_values_that_are_no_strings_are_written_as_json(odradek: Run, topic: str) -> None:
    line = '{"key": 7, "value": {"a": [1, null]}, "headers": {"h": "x"}, "partition": 0}\n'
    odradek("produce", topic, "-f", "json", stdin=line)
    (row,) = records(odradek, topic)
    assert (row["key"], row["value"], row["headers"]) == ("7", '{"a":[1,null]}', [{"key": "h", "value": "x"}])


def test_a_line_that_is_no_record_is_named_and_those_before_it_are_written(odradek: Run, topic: str) -> None:
    ran = odradek("produce", topic, "-K", ":", "-p", "0", stdin="a:1\nb:2\nnonsense\nc:3\n")
    assert ran.code == 1
    assert ran.output == f"2 records written to {topic}: partition 0, offsets 0–1\n"
    assert "line 3" in ran.errors
    assert len(records(odradek, topic)) == 2


def test_tombstone(odradek: Run, topic: str) -> None:
    assert odradek("produce", topic, "--key", "k", "--null-value").code == 0
    (row,) = records(odradek, topic)
    assert (row["key"], row["value"]) == ("k", None)


def test_null_marker(odradek: Run, topic: str) -> None:
    odradek("produce", topic, "-p", "0", "-K", ":", "--null-marker", "NULL", stdin="k:NULL\nNULL:v\n")
    assert [(row["key"], row["value"]) for row in records(odradek, topic)] == [("k", None), (None, "v")]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec(odradek: Run, topic: str, codec: str) -> None:
    value = "compressible " * 50
    assert odradek("produce", topic, "--compression", codec, "--value", value).code == 0
    assert [row["value"] for row in records(odradek, topic)] == [value]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks(odradek: Run, topic: str, acks: str) -> None:
    ran = odradek("produce", topic, "--acks", acks, "-p", "0", "--value", "v")
    where = "1 record, unacknowledged" if acks == "0" else "offset 0"
    assert (ran.code, ran.output) == (0, f"1 record written to {topic}: partition 0, {where}\n")


def test_idempotent(odradek: Run, topic: str) -> None:
    lines = "".join(f"{number}\n" for number in range(1000))
    assert odradek("produce", topic, "--idempotent", "-p", "0", stdin=lines).code == 0
    assert [row["value"] for row in records(odradek, topic)] == [str(number) for number in range(1000)]


def test_same_key_same_partition(odradek: Run, topic: str) -> None:
    odradek("produce", topic, "--key", "k", stdin="1\n2\n3\n")
    assert len({row["partition"] for row in records(odradek, topic)}) == 1


def test_a_partition_that_is_not_there_is_named(odradek: Run, topic: str) -> None:
    ran = odradek("produce", topic, "--partition", "7", "--value", "v")
    assert (ran.code, ran.output) == (1, "")
    assert "there is no such partition" in ran.errors


def test_a_record_too_large_says_which_setting_allows_it(odradek: Run, topic: str) -> None:
    ran = odradek("produce", topic, stdin=b"x" * 2_000_000)
    assert ran.code == 1
    assert "max.message.bytes" in ran.errors


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("-f", "%q"), "%q is not one of"),
        (("-f", "%k%v"), "two verbs need a separator"),
        (("-f", "%k:%k"), "at most once"),
        (("-f", "%v", "-K", ":"), "exclude each other"),
        (("--null-value", "--value", "v"), "--null-value writes one record"),
        (("--idempotent", "--acks", "1"), "--idempotent needs --acks all"),
        (("--timestamp", "yesterday"), "'yesterday' is not a time"),
        (("--header", "novalue"), "'novalue' is not key=value"),
        (("--file", "/does/not/exist"), "/does/not/exist"),
    ],
)
def test_wrong_usage_is_reported_before_anything_is_written(
    offline: Run, arguments: tuple[str, ...], complaint: str
) -> None:
    ran = offline("produce", "a", *arguments)
    assert ran.code == 2
    assert complaint in ran.errors


def test_bytes_of_the_command_line_are_written_as_they_are(odradek: Run, topic: str) -> None:
    odd = b"\xff".decode(errors="surrogateescape")
    ran = odradek("produce", topic, "-p", "0", "-k", odd, "-v", odd, "-H", f"h={odd}")
    assert (ran.code, ran.errors) == (0, "")
    (row,) = records(odradek, topic)
    assert (row["key"], row["key_encoding"], row["value"], row["value_encoding"]) == (
        "/w==",
        "base64",
        "/w==",
        "base64",
    )
    assert row["headers"] == [{"key": "h", "value": "/w==", "value_encoding": "base64"}]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"value":"x","partition":99999999999}', "99999999999 is not a partition"),
        ('{"value":"x","partition":true}', "true is not a partition"),
        ('{"value":"x","timestamp":99999999999999999999}', "is not a time that a log can hold"),
        ('{"value":"x","timestamp":-1}', "is not a time that a log can hold"),
        ('{"value":"x","timestamp":"99999999999999999999"}', "is not a time"),
        (r'{"value":"\ud800"}', r"\ud800 alone is no character"),
        (r'{"key":"\ud800","value":"x"}', r"\ud800 alone is no character"),
        (r'{"value":{"a":["\ud800"]}}', r"\ud800 alone is no character"),
        (r'{"value":"x","headers":{"\ud800":"1"}}', r"\ud800 alone is no character"),
        (r'{"value":"x","headers":[{"key":"\ud800"}]}', r"\ud800 alone is no character"),
        ('{"value":' + "[" * 100_000, "nested too deeply"),
        ('{"value":' + "9" * 5000 + "}", "it is not JSON"),
    ],
    ids=lambda value: value[:40],
)
def test_a_json_line_that_cannot_be_written_is_named(odradek: Run, topic: str, line: str, complaint: str) -> None:
    ran = odradek("produce", topic, "-f", "json", stdin=f'{{"value":"first","partition":0}}\n{line}\n')
    assert (ran.code, ran.output) == (1, f"1 record written to {topic}: partition 0, offset 0\n")
    assert ran.errors.startswith("odradek: error: line 2: ")
    assert complaint in ran.errors
    assert len(ran.errors) < 200


@pytest.mark.parametrize(
    ("input_format", "line", "complaint"),
    [
        ("%p:%v", b"99999999999:x\n", "99999999999 is not a partition"),
        ("%p:%v", b"9" * 5000 + b":x\n", "is not a partition"),
        ("%T|%v", b"99999999999999999999|x\n", "is not a time"),
        ("%h:%v", b"\xff=1:x\n", "is no header name"),
    ],
)
def test_a_line_out_of_bounds_is_named(
    odradek: Run, topic: str, input_format: str, line: bytes, complaint: str
) -> None:
    ran = odradek("produce", topic, "-f", input_format, stdin=line)
    assert ran.code == 1
    assert ran.errors.startswith("odradek: error: line 1: ")
    assert complaint in ran.errors


def test_whatever_stops_it_what_was_read_is_written_and_reported(
    odradek: Run, topic: str, bootstrap_server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_arguments: object) -> Iterator[InputRecord]:
        yield InputRecord(value=b"1", partition=0)
        raise OSError(errno.EIO, "the disk is gone")

    monkeypatch.setattr(produce, "records_of", broken)
    assert run(["produce", topic, "-b", bootstrap_server]) == 1
    shown = capsys.readouterr()
    assert shown.out == f"1 record written to {topic}: partition 0, offset 0\n"
    assert "the disk is gone" in shown.err
    assert [row["value"] for row in records(odradek, topic)] == ["1"]


def test_a_timestamp_that_the_topic_refuses_says_which_setting_allows_it(odradek: Run, topic: str) -> None:
    ran = odradek("produce", topic, "-T", str(2**63 - 1), "-v", "x")
    assert ran.code == 1
    assert "message.timestamp.after.max.ms" in ran.errors


def test_all_records_that_were_refused_are_counted(odradek: Run, topic: str) -> None:
    lines = "".join(f"{number}\n" for number in range(50_000))
    ran = odradek("produce", topic, "-T", str(2**63 - 1), "--format", "json", stdin=lines)
    failed = ran.row["failed"]
    assert (ran.code, ran.row["records"]) == (1, 0)
    assert f"error: {count_text(failed, 'record')} not written: " in ran.errors
    assert (f"; input after record {failed:,} was not sent" in ran.errors) == (failed < 50_000)


def test_writing_stops_after_a_refusal() -> None:
    class Writer:
        first_error: object = None
        written = 0

        def write(self, _record: InputRecord) -> bool:
            self.written += 1
            self.first_error = "refused" if self.written == 2 else None
            return True

    for count, stopped_after in ((2, None), (3, 2), (9, 2)):
        writer: Any = Writer()
        assert produce.write_all(writer, [InputRecord()] * count) == stopped_after
        assert writer.written == 2


def test_a_topic_may_allow_larger_records_than_others(odradek: Run, new_name: Callable[[], str]) -> None:
    name = new_name()
    assert odradek("topic", "create", name, "--config", "max.message.bytes=3000000").code == 0
    ran = odradek("produce", name, stdin=b"x" * 2_000_000)
    assert ran.code == 0, ran.errors


def test_a_quota_delays_records_and_drops_none(
    odradek: Run,
    bootstrap_server: str,
    topic: str,
    new_name: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    client = new_name()
    assert odradek("quota", "set", "--client-id", client, "producer_byte_rate=20000").code == 0
    monkeypatch.setattr(produce, "GIVES_UP_AFTER_S", 1.0)
    settings = {"acks": "all", "batch.size": 10_000}
    writer = produce.RecordWriter(Cluster(bootstrap_server, {"client.id": client}), topic, settings)
    began_s = time.monotonic()
    for _ in range(300):
        assert writer.write(InputRecord(value=b"v" * 1000))
    writer.finish()
    writer.raise_failures()
    assert writer.written == 300
    assert time.monotonic() - began_s > 2.0
    assert "a quota of the cluster throttles this client" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ("-v", "a", "--file", __file__),
        ("-K", ":", "-v", "x"),
        ("-f", "json", "-v", "x"),
        ("-K", ":", "--null-value", "-k", "x"),
        ("-f", "%v", "--null-value"),
    ],
)
def test_an_option_that_would_have_no_effect_is_wrong_usage(offline: Run, options: tuple[str, ...]) -> None:
    ran = offline("produce", "a", *options)
    assert (ran.code, ran.output) == (2, "")
    assert "exclude" in ran.errors or "has no effect" in ran.errors


def test_a_note_says_that_the_broker_created_the_topic(odradek: Run, new_name: Callable[[], str]) -> None:
    name = new_name()
    first = odradek("produce", name, "--value", "a")
    assert first.errors == f"the broker created topic {name} with 1 partition, because it did not exist\n"
    assert odradek("produce", name, "--value", "b").errors == ""
    other = new_name()
    assert odradek("produce", other, "--value", "a", "--format", "json").row["topic_created"] is True
    assert odradek("produce", other, "--value", "a", "--format", "json").row["topic_created"] is False
