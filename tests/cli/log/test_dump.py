"""`odradek log dump` on files as they lie on disk: whole, damaged, and a real broker's own."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from crc32c import crc32c

from odradek.protocol.compression import Compression
from odradek.protocol.records import Record, build_batch

if TYPE_CHECKING:
    from odradek.testing import RunningBroker
    from tests.commands import Run

NAME = "00000000000000000100"
TIME_MS = 1_577_836_800_000


def records(first: int, count: int) -> list[Record]:
    return [
        Record(offset, TIME_MS + offset, b"k%d" % offset, b"value %d" % offset * 20, [("h", b"\xff")])
        for offset in range(first, first + count)
    ]


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """Offsets 100 to 129 in three batches of three codecs, the last from an idempotent producer."""
    path = tmp_path / f"{NAME}.log"
    batches = [
        build_batch(records(100, 10), base_offset=100, leader_epoch=4),
        build_batch(records(110, 10), base_offset=110, leader_epoch=4, compression=Compression.ZSTD),
        build_batch(
            records(120, 10), base_offset=120, leader_epoch=5, compression=Compression.GZIP,
            producer_id=77, producer_epoch=1, base_sequence=20,
        ),
    ]  # fmt: skip
    path.write_bytes(b"".join(batches))
    return path


def test_batches_of_a_segment(offline: Run, segment: Path) -> None:
    ran = offline("log", "dump", str(segment))
    assert (ran.code, ran.errors) == (0, "")
    head, titles, *rows = ran.output.splitlines()
    assert "offsets 100–129 · 30 records · 3 batches · none×1 zstd×1 gzip×1" in head
    assert "2020-01-01T00:00:00.100Z to 2020-01-01T00:00:00.129Z" in head
    assert titles.split()[:6] == ["POSITION", "FIRST", "LAST", "RECORDS", "BYTES", "CODEC"]
    assert [[*row.split()[1:4], row.split()[5]] for row in rows] == [
        ["100", "109", "10", "none"],
        ["110", "119", "10", "zstd"],
        ["120", "129", "10", "gzip"],
    ]
    assert "77/1 seq 20" in rows[2]


def test_records_and_values(offline: Run, segment: Path) -> None:
    ran = offline("log", "dump", "--values", str(segment))
    assert ran.code == 0
    assert ran.output.count("batch at ") == 3
    assert "k115" in ran.output
    assert "value 115" in ran.output
    sizes_only = offline("log", "dump", "--records", str(segment)).output
    assert "k115" not in sizes_only
    assert "2020-01-01T00:00:00.115Z" in sizes_only


def test_json_has_a_line_for_everything(offline: Run, segment: Path) -> None:
    rows = offline("log", "dump", "--values", "--format", "json", str(segment)).rows
    kinds = [row["kind"] for row in rows]
    assert (kinds.count("segment"), kinds.count("batch"), kinds.count("record")) == (1, 3, 30)
    summary = rows[0]
    assert (summary["first_offset"], summary["last_offset"], summary["records"]) == (100, 129, 30)
    batch = [row for row in rows if row["kind"] == "batch"][2]
    assert (batch["codec"], batch["producer_id"], batch["base_sequence"], batch["leader_epoch"]) == ("gzip", 77, 20, 5)
    record = next(row for row in rows if row["kind"] == "record" and row["offset"] == 115)
    assert (record["key"], record["timestamp"]) == ("k115", TIME_MS + 115)
    assert record["headers"] == [{"key": "h", "value": "/w==", "value_encoding": "base64"}]


def test_a_torn_tail_is_named(offline: Run, segment: Path) -> None:
    segment.write_bytes(segment.read_bytes()[:-10])
    ran = offline("log", "dump", str(segment), "--format", "json")
    assert ran.code == 1
    (problem,) = [row["problem"] for row in ran.rows if row["kind"] == "problem"]
    assert "is cut off after" in problem
    assert [row["base_offset"] for row in ran.rows if row["kind"] == "batch"] == [100, 110]


def test_garbage_ends_the_dump_without_a_traceback(offline: Run, tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(b"\xff" * 1000)
    ran = offline("log", "dump", str(path))
    assert ran.code == 1
    assert "no batch begins here" in ran.output


def test_an_empty_segment(offline: Run, tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.log"
    path.touch()
    ran = offline("log", "dump", str(path))
    assert (ran.code, ran.output) == (0, f"{path}  0 B · no batches\n")


def test_indexes_stop_at_the_zeros_that_kafka_preallocates(offline: Run, tmp_path: Path) -> None:
    offsets, times = tmp_path / f"{NAME}.index", tmp_path / f"{NAME}.timeindex"
    offsets.write_bytes(struct.pack(">IIII", 9, 4096, 19, 8192) + bytes(800))
    times.write_bytes(struct.pack(">qIqI", TIME_MS, 9, TIME_MS + 5, 19) + bytes(1200))
    rows = offline("log", "dump", str(offsets), str(times), "--format", "json").rows
    assert [(row["kind"], row["offset"]) for row in rows] == [
        ("offset_index_entry", 109),
        ("offset_index_entry", 119),
        ("time_index_entry", 109),
        ("time_index_entry", 119),
    ]
    assert rows[1]["position"] == 8192
    assert rows[2]["time"] == "2020-01-01T00:00:00.000Z"
    text = offline("log", "dump", str(offsets)).output
    assert "offset index · 2 entries" in text
    assert ["109", "4096"] in [line.split() for line in text.splitlines()]


def producer_snapshot(*entries: tuple[int, ...]) -> bytes:
    body = struct.pack(">i", len(entries)) + b"".join(struct.pack(">qhiqiqiq", *entry) for entry in entries)
    return struct.pack(">hI", 1, crc32c(body)) + body


def test_producer_snapshots(offline: Run, tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.snapshot"
    path.write_bytes(producer_snapshot((77, 1, 29, 129, 9, TIME_MS, -1, -1)))
    row = offline("log", "dump", str(path), "--format", "json").row
    assert (row["producer_id"], row["producer_epoch"], row["last_sequence"], row["last_offset"]) == (77, 1, 29, 129)
    assert row["transaction_first_offset"] is None


def test_a_snapshot_whose_checksum_is_wrong_is_a_problem(offline: Run, tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.snapshot"
    data = bytearray(producer_snapshot((77, 1, 29, 129, 9, TIME_MS, -1, -1)))
    data[-1] ^= 1
    path.write_bytes(data)
    assert offline("log", "dump", str(path)).code == 1


def test_checkpoints(offline: Run, tmp_path: Path) -> None:
    epochs, points = tmp_path / "leader-epoch-checkpoint", tmp_path / "recovery-point-offset-checkpoint"
    epochs.write_text("0\n2\n4 100\n5 120\n")
    points.write_text("0\n1\npump 0 130\n")
    rows = offline("log", "dump", str(epochs), str(points), "--format", "json").rows
    assert [(row["leader_epoch"], row["start_offset"]) for row in rows[:2]] == [(4, 100), (5, 120)]
    assert (rows[2]["topic"], rows[2]["partition"], rows[2]["offset"]) == ("pump", 0, 130)


@pytest.mark.parametrize("text", ["", "1\n0\n", "0\n2\n4 100\n", "0\n1\n4\n", "nonsense"])
def test_what_is_no_checkpoint_is_a_problem(offline: Run, tmp_path: Path, text: str) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(text)
    ran = offline("log", "dump", str(path))
    assert ran.code == 1
    assert "leader epoch checkpoint" in ran.output
    assert "1 problem found" in ran.errors


def test_a_directory_is_a_table_of_segments(offline: Run, segment: Path) -> None:
    (segment.parent / "leader-epoch-checkpoint").write_text("0\n1\n4 100\n")
    ran = offline("log", "dump", str(segment.parent))
    assert ran.code == 0
    lines = [line.split() for line in ran.output.splitlines()]
    assert [f"{NAME}.log", "100", "129", "3", "30"] in [line[:5] for line in lines]
    assert ["leader-epoch-checkpoint", "leader", "epochs,", "1", "entry"] in lines


def test_a_directory_without_segments_is_refused(offline: Run, tmp_path: Path) -> None:
    ran = offline("log", "dump", str(tmp_path))
    assert ran.code == 1
    assert "no segments" in ran.errors


def test_other_files_are_refused(offline: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert offline("log", "dump", str(tmp_path / "notes.txt")).code == 1
    assert offline("log", "dump", str(tmp_path / "missing")).code == 2


def test_a_brokers_own_files(odradek: Run, odradek_broker: RunningBroker) -> None:
    """What was produced is what lies on disk, and nothing is wrong with it, before and after a restart."""
    where = {"ODRADEK_BOOTSTRAP_SERVER": odradek_broker.bootstrap_servers}
    odradek("topic", "create", "pump", "-p", "1", **where)
    lines = "".join(f"value {number}\n" for number in range(2000))
    odradek("produce", "pump", "-z", "zstd", "--idempotent", stdin=lines, **where)
    partition = Path(odradek_broker.data_directory) / "pump-0"
    for _ in range(2):
        ran = odradek("log", "dump", "--values", "--format", "json", str(partition))
        assert ran.code == 0, ran.output
        assert [row["value"] for row in ran.rows if row["kind"] == "record"] == lines.splitlines()
        assert {row["codec"] for row in ran.rows if row["kind"] == "batch"} == {"zstd"}
        odradek_broker.restart()
    producers = [row for row in ran.rows if row["kind"] == "producer"]
    assert producers
    assert producers[-1]["last_offset"] == 1999
