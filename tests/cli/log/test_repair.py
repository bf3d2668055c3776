"""`odradek log verify` and `repair`: every kind of damage is found, and repaired without losing a byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.cli.log.check import check_partition
from odradek.host.host import real_host
from odradek.log.log_config import LogConfig
from odradek.log.producer_entry import ProducerBatch, ProducerEntry
from odradek.log.producer_snapshot import encode_snapshot
from tests.log.batches import EVERYTHING, append, make_batch, open_log, read_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.log.partition_log import PartitionLog
    from odradek.testing import RunningBroker
    from tests.commands import Run

CONFIG = LogConfig(segment_bytes=2000, index_interval_bytes=100, message_timestamp_after_max_ms=EVERYTHING)
SEGMENTS = 4


def open_partition(path: Path, *, clean_shutdown: bool = True) -> PartitionLog:
    return open_log(real_host(), str(path), CONFIG, clean_shutdown=clean_shutdown)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Four segments with indexes, snapshots and leader epochs, closed cleanly."""
    path = tmp_path / "data" / "pump-0"
    log = open_partition(path)
    number = 0
    while len(log.segments) < SEGMENTS or log.segments[-1].size_bytes < 1000:
        append(log, make_batch([b"x" * 100] * 2, producer=(7, 0, 2 * number)), leader_epoch=number // 10)
        number += 1
    log.close()
    return path


def segments(partition: Path, suffix: str = ".log") -> list[Path]:
    return sorted(partition.glob(f"*{suffix}"))


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def second_batch(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    start = 12 + int.from_bytes(data[8:12], "big")
    return start, start + 12 + int.from_bytes(data[start + 8 : start + 12], "big")


def test_whole_files_are_called_whole(offline: Run, partition: Path) -> None:
    for path in (partition, partition.parent, segments(partition)[1]):
        ran = offline("log", "verify", str(path))
        assert (ran.code, ran.errors) == (0, "")
        assert ran.output.splitlines()[-1].endswith("no problems")
        assert offline("log", "repair", str(path)).output.splitlines()[-1].endswith("nothing to repair")


def tear_tail(partition: Path) -> Path:
    path = segments(partition)[-1]
    path.write_bytes(path.read_bytes()[:-5])
    return path


def rot_in_the_middle(partition: Path) -> Path:
    path = segments(partition)[1]
    flip(path, second_batch(path)[0] + 70)
    return path


def lose_an_end(partition: Path) -> Path:
    path = segments(partition)[1]
    path.write_bytes(path.read_bytes()[:-5])
    return path


def break_an_offset_index(partition: Path) -> Path:
    path = segments(partition, ".index")[1]
    flip(path, 7)
    return path


def break_a_time_index(partition: Path) -> Path:
    path = segments(partition, ".timeindex")[1]
    path.write_bytes(path.read_bytes()[:-12])
    return path


def lose_an_index(partition: Path) -> Path:
    path = segments(partition, ".index")[0]
    path.unlink()
    return path


def break_a_snapshot(partition: Path) -> Path:
    path = segments(partition, ".snapshot")[0]
    flip(path, 9)
    return path


def break_the_epochs(partition: Path) -> Path:
    path = partition / "leader-epoch-checkpoint"
    path.write_text("nonsense")
    return path


def leave_an_orphan(partition: Path) -> Path:
    path = partition / f"{10**6:020d}.index"
    path.write_bytes(bytes(8))
    return path


# What was done to the files, how many batches it costs, and what is kept beside.
DAMAGE: list[tuple[Callable[[Path], Path], int, str | None]] = [
    (tear_tail, 1, ".tail"),
    (rot_in_the_middle, 1, ".corrupt"),
    (lose_an_end, 1, ".corrupt"),
    (break_an_offset_index, 0, None),
    (break_a_time_index, 0, None),
    (lose_an_index, 0, None),
    (break_a_snapshot, 0, ".aside"),
    (break_the_epochs, 0, ".aside"),
    (leave_an_orphan, 0, ".aside"),
]


def test_a_repaired_segment_leaves_no_hole_before_the_next_one(offline: Run, partition: Path) -> None:
    """A broker that recovers takes a hole for an incomplete write, and discards the segments after it."""
    path = lose_an_end(partition)
    assert "1 repair made" in offline("log", "repair", str(path)).output
    log = open_partition(partition, clean_shutdown=False)
    assert len(log.segments) == SEGMENTS


@pytest.mark.parametrize(
    ("damage", "suffix"), [(tear_tail, ".tail"), (rot_in_the_middle, ".corrupt"), (break_the_epochs, ".aside")]
)
def test_a_later_repair_keeps_what_earlier_ones_have_removed(
    offline: Run, partition: Path, damage: Callable[[Path], Path], suffix: str
) -> None:
    removed = []
    for _ in range(3):
        name = damage(partition).name + suffix
        assert "1 repair made" in offline("log", "repair", str(partition)).output
        removed.append((partition / name).read_bytes())
    assert [(partition / each).read_bytes() for each in (f"{name}.1", f"{name}.2", name)] == removed


@pytest.mark.parametrize("has_lock_file", [True, False], ids=["of-a-broker", "copied"])
@pytest.mark.parametrize(("damage", "cost", "kept"), DAMAGE, ids=lambda value: getattr(value, "__name__", ""))
def test_damage_is_found_and_repaired_and_nothing_else_is_lost(
    offline: Run, partition: Path, damage: Callable[[Path], Path], cost: int, kept: str | None, has_lock_file: bool
) -> None:
    if has_lock_file:
        (partition.parent / ".lock").touch()
    log = open_partition(partition)
    batches = read_all(log)
    log.close()
    path = damage(partition)
    damaged = {file.name: file.read_bytes() for file in partition.iterdir()}
    found = offline("log", "verify", str(partition))
    assert found.code == 1
    assert f"problem {path.name}: " in found.output
    assert found.errors.startswith("odradek: error: 1 problem found, shown above; `odradek log repair --dry-run ")

    done = offline("log", "repair", str(partition))
    assert (done.code, done.errors) == (0, "")
    assert "1 repair made" in done.output
    assert check_partition(str(partition), lambda _: None, is_live=False).all_findings == []
    asides = [file for file in partition.iterdir() if file.suffix in (".tail", ".corrupt", ".aside")]
    assert [file.name for file in asides] == ([path.name + kept] if kept else [])
    if kept in (".corrupt", ".aside"):
        assert asides[0].read_bytes() == damaged[path.name]
    elif kept:
        assert damaged[path.name].endswith(asides[0].read_bytes())

    log = open_partition(partition, clean_shutdown=False)  # the strictest reader: it scans everything
    left = [batch for batch in read_all(log) if int.from_bytes(batch[57:61], "big")]
    assert len(left) == len(batches) - cost
    assert set(left) <= set(batches)
    assert len(log.segments) == SEGMENTS
    assert append(log, make_batch([b"goes on"])) == log.log_end_offset - 1


def test_a_dry_run_tells_and_does_nothing(offline: Run, partition: Path) -> None:
    torn, rotten = tear_tail(partition), rot_in_the_middle(partition)
    before = {file.name: file.read_bytes() for file in partition.iterdir()}
    planned = offline("log", "repair", "--dry-run", "--format", "json", str(partition))
    rows = planned.rows
    assert [(row["file"], row["done"]) for row in rows] == [(str(rotten), False), (str(torn), False)]
    assert "2 repairs would be made" in offline("log", "repair", "--dry-run", str(partition)).output
    assert {file.name: file.read_bytes() for file in partition.iterdir()} == before


def test_checkpoints_are_compared_with_the_logs(offline: Run, partition: Path) -> None:
    data = partition.parent
    (data / "replication-offset-checkpoint").write_text("0\n1\npump 0 100000\n")
    (data / "recovery-point-offset-checkpoint").write_text("1\nnonsense\n")
    ran = offline("log", "verify", "--format", "json", str(data))
    rows = [json.loads(line) for line in ran.output.splitlines()]
    assert ran.code == 1
    assert [row["kind"] for row in rows] == ["partition", "problem", "problem", "summary"]
    texts = {Path(row["file"]).name: row for row in rows if row["kind"] == "problem"}
    assert "high watermark 100000 is after the end" in texts["replication-offset-checkpoint"]["text"]
    assert not texts["replication-offset-checkpoint"]["can_be_repaired"]
    assert texts["recovery-point-offset-checkpoint"]["can_be_repaired"]
    repaired = offline("log", "repair", str(data))
    assert (repaired.code, "1 problem cannot be repaired" in repaired.errors) == (1, True)
    assert "\n  cannot be repaired: restore the file from a copy\n" in repaired.output
    assert (data / "recovery-point-offset-checkpoint.aside").exists()


def test_what_a_compaction_left_is_only_noted(offline: Run, partition: Path) -> None:
    (partition / f"{0:020d}.log.cleaned").write_bytes(b"half")
    ran = offline("log", "verify", str(partition))
    assert ran.code == 0
    assert "note" in ran.output


def test_a_file_that_is_no_segment_is_named(offline: Run, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    ran = offline("log", "verify", str(path))
    assert ran.code == 1
    assert ran.errors.startswith(f"odradek: error: {path} is not a segment of a log; name a segment (.log), ")


def test_beside_a_running_broker_it_may_be_verified_and_not_repaired(
    offline: Run, odradek_broker: RunningBroker
) -> None:
    data, at = odradek_broker.data_directory, odradek_broker.bootstrap_servers
    assert offline("topic", "create", "pump", ODRADEK_BOOTSTRAP_SERVER=at).code == 0
    assert offline("produce", "pump", stdin="one\n", ODRADEK_BOOTSTRAP_SERVER=at).code == 0
    ran = offline("log", "verify", data)
    assert (ran.code, ran.errors) == (0, "")
    assert "1 record" in ran.output
    refused = offline("log", "repair", data)
    assert refused.code == 1
    assert "stop it first" in refused.errors
    assert offline("log", "repair", "--dry-run", data).code == 0


@pytest.mark.parametrize("command", ["verify", "repair"])
def test_a_path_that_is_not_part_of_a_log_directory_is_a_failure(offline: Run, tmp_path: Path, command: str) -> None:
    """Neither an empty directory, nor one whose subdirectories only look like partitions, nor other .log files."""
    empty, look_alike, logs = tmp_path / "empty", tmp_path / "look-alike", tmp_path / "logs"
    (look_alike / "python-3").mkdir(parents=True)
    for path in (empty, logs):
        path.mkdir()
    (logs / "boot.log").write_text("not a segment\n")
    for path in (empty, look_alike, look_alike / "python-3", logs, logs / "boot.log"):
        ran = offline("log", command, str(path))
        assert (ran.code, ran.output) == (1, ""), path
        assert "name a segment (.log), the directory of a partition, or one of the broker's log.dirs" in ran.errors


def test_an_empty_partition_is_called_empty(offline: Run, tmp_path: Path) -> None:
    directory = tmp_path / "pump-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(b"")
    ran = offline("log", "verify", str(directory))
    assert "1 segment · 0 records · 0 B · empty" in ran.output


def of_another_log(partition: Path) -> Path:
    path = max(partition.glob("*.snapshot"))
    entry = ProducerEntry(0)
    entry.batches.append(ProducerBatch(3, 3, 1, 0))
    path.write_bytes(encode_snapshot([entry.summary(7)]))
    return path


def begin_an_epoch_elsewhere(partition: Path) -> Path:
    path = partition / "leader-epoch-checkpoint"
    lines = path.read_text().splitlines()
    epoch, offset = map(int, lines[3].split())
    path.write_text("\n".join([*lines[:3], f"{epoch} {offset - 2}", *lines[4:]]) + "\n")
    return path


@pytest.mark.parametrize("damage", [of_another_log, begin_an_epoch_elsewhere], ids=lambda damage: damage.__name__)
def test_side_files_are_compared_with_the_batches(
    offline: Run, partition: Path, damage: Callable[[Path], Path]
) -> None:
    """They are as Kafka writes them, but not of these batches."""
    damaged = damage(partition)
    found = offline("log", "verify", str(partition))
    assert (found.code, f"problem {damaged.name}: " in found.output) == (1, True), found.output


def test_files_that_a_broker_would_write_again_are_missed(offline: Run, partition: Path) -> None:
    data = partition.parent
    (data / ".lock").touch()
    (data / "replication-offset-checkpoint").write_text("0\n0\n")
    found = offline("log", "verify", str(data))
    missing = ["log-start-offset-checkpoint", "recovery-point-offset-checkpoint", "meta.properties"]
    assert found.code == 1
    assert [f"problem {name}: is missing" in found.output for name in missing] == [True] * 3
    assert "problem partition.metadata: is missing or damaged" in found.output
