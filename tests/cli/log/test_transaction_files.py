"""`odradek log dump | verify | repair` of the transaction indexes of a partition."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.cli.log import check
from odradek.host.host import real_host
from odradek.log.log_config import LogConfig
from odradek.log.log_directory import CLEAN_SHUTDOWN_FILE
from odradek.log.transaction_index import (
    AbortedTransaction,
    checksum_path,
    decode_transaction_index,
    encode_transaction_index,
)
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker
from tests.log.batches import EVERYTHING, append, open_log
from tests.log.compaction.compacted_logs import keyed_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.cli.log.findings import PartitionCheck
    from tests.commands import Run

CONFIG = LogConfig(message_timestamp_after_max_ms=EVERYTHING)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """The index of the second segment, in which a transaction was aborted that began in the first."""
    host = real_host()
    path = tmp_path / "data" / "pump-0"
    log = open_log(host, str(path), CONFIG)
    now_ms = host.clock.now_ms()
    for sequence in (0, 1):
        append(log, keyed_batch([(b"k", b"v")], producer=(7, 0, sequence), is_transactional=True, timestamp=now_ms))
        log.roll()
    append(log, keyed_batch([(b"k", b"v")], timestamp=now_ms))
    log.append_marker(EndTransactionMarker(7, 1, ControlRecordType.ABORT, 0), 0, transaction_version=2)
    log.roll()
    append(log, keyed_batch([(b"k", b"v")], timestamp=now_ms))
    log.close()
    host.workers.close()
    return path / f"{2:020d}.txnindex"


def test_the_aborted_transactions_are_shown(offline: Run, index: Path) -> None:
    (row,) = map(json.loads, offline("log", "dump", str(index), "--format", "json").output.splitlines())
    assert (row["producer_id"], row["first_offset"], row["last_offset"]) == (7, 0, 3)
    assert offline("log", "verify", str(index.parent)).output.splitlines()[-1].endswith("no problems")


def lose(index: Path) -> None:
    index.unlink()


def cut(index: Path) -> None:
    index.write_bytes(index.read_bytes()[:-1])


def empty(index: Path) -> None:
    index.write_bytes(b"")


def flip_a_bit_of_the_producer_id(index: Path) -> None:
    data = bytearray(index.read_bytes())
    data[9] ^= 4
    index.write_bytes(data)


def list_another(index: Path) -> None:
    """An index without a checksum, as Apache Kafka has it: a transaction with another producer's marker."""
    (entry,) = decode_transaction_index(index.read_bytes())
    another = AbortedTransaction(0, 8, entry.last_offset - 1, 0)
    index.write_bytes(encode_transaction_index([another, entry]))
    Path(checksum_path(str(index))).unlink()


@pytest.mark.parametrize(
    "damage", [lose, cut, empty, flip_a_bit_of_the_producer_id, list_another], ids=lambda damage: damage.__name__
)
def test_an_index_without_an_aborted_transaction_is_rebuilt(
    offline: Run, index: Path, damage: Callable[[Path], None]
) -> None:
    """Else its records would be read as committed."""
    before = index.read_bytes()
    damage(index)
    found = offline("log", "verify", str(index.parent))
    assert found.code == 1
    assert f"problem {index.name}: " in found.output
    done = offline("log", "repair", str(index.parent))
    assert (done.code, done.errors) == (0, "")
    assert index.read_bytes() == before
    assert offline("log", "verify", str(index.parent)).code == 0


def test_the_newest_index_is_whole_after_a_clean_stop(offline: Run, index: Path) -> None:
    """A broker that was killed has not written it."""
    for path in index.parent.glob(f"{4:020d}.*"):
        path.unlink()
    index.unlink()
    Path(checksum_path(str(index))).unlink()
    assert offline("log", "verify", str(index.parent)).code == 0
    (index.parents[1] / CLEAN_SHUTDOWN_FILE).touch()
    found = offline("log", "verify", str(index.parent))
    assert (found.code, f"problem {index.name}: does not list" in found.output) == (1, True)


def test_a_snapshot_with_a_transaction_that_a_marker_has_ended_is_a_problem(offline: Run, index: Path) -> None:
    snapshots = sorted(index.parent.glob("*.snapshot"))
    before_the_marker = index.with_suffix(".snapshot")
    snapshots[-1].write_bytes(before_the_marker.read_bytes())
    found = offline("log", "verify", str(index.parent))
    assert f"problem {snapshots[-1].name}: its transaction of producer 7 from offset 0 on has ended" in found.output


def test_a_check_keeps_few_facts_and_lists_a_partition_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition may have thousands of segments and millions of batches."""
    rounds, batches_each = 12, 5
    host = real_host()
    path = tmp_path / "data" / "pump-0"
    log = open_log(host, str(path), CONFIG)
    now_ms = host.clock.now_ms()
    for number in range(rounds):
        for sequence in range(number * batches_each, (number + 1) * batches_each):
            append(log, keyed_batch([(b"k", b"v")], producer=(7, 0, sequence), is_transactional=True, timestamp=now_ms))
        log.append_marker(EndTransactionMarker(7, 0, ControlRecordType.ABORT, 0), 0, transaction_version=1)
        log.roll()
    log.close()
    host.workers.close()
    listed: list[str] = []
    kept: list[int] = []
    list_directory, check_side_files = os.listdir, check._check_side_files

    def count_listing(path: str) -> list[str]:
        listed.append(path)
        return list_directory(path)

    def count_facts(partition: PartitionCheck, names: list[str], *, is_live: bool) -> None:
        in_segments = [len(each.producer_offsets) + len(each.batch_offsets) for each in partition.segments]
        assert not any(in_segments)
        kept.extend(map(len, (*partition.last_batches.values(), *partition.last_markers.values())))
        check_side_files(partition, names, is_live=is_live)

    monkeypatch.setattr(os, "listdir", count_listing)
    monkeypatch.setattr(check, "_check_side_files", count_facts)
    found = check.check_partition(str(path), lambda _: None, is_live=False)
    assert (found.all_findings, len(found.segments), len(listed)) == ([], rounds + 1, 2)
    assert kept == [rounds, rounds], "a batch and a marker of each segment"
