"""The same files through Apache Kafka's own log cleaner and through ours: the same records are left, in the same
batches, with the same deadlines. Only empty batches may be more with us: a segment that we write ends where the next
begins."""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.host.background import real_background_context
from odradek.host.host import Host, real_host
from odradek.log.compaction.compactor import compact
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.log.transaction_index import AbortedTransaction
from odradek.protocol.batch import DELETE_HORIZON_FLAG, read_batch_header
from odradek.protocol.compression import Compression
from odradek.protocol.records import read_records
from tests.jvm.json_session import JsonSession
from tests.log.batches import EVERYTHING, append, open_log, read_all
from tests.log.compaction.compacted_logs import KeyValue, adopt, job_for, keyed_batch, marker_batch

pytestmark = [pytest.mark.more, pytest.mark.jvm, pytest.mark.timeout(300)]

SEGMENT_BYTES = 4000
RETENTION_MS = 60_000
ROUNDS = 3
CONFIG = LogConfig(
    is_compacted=True, is_deleted=False, segment_bytes=SEGMENT_BYTES, message_timestamp_after_max_ms=EVERYTHING
)


@pytest.fixture(scope="module")
def cleaner(jvm: None) -> Iterator[JsonSession]:
    with JsonSession("odradek.CleanerSession") as session:
        yield session


class Writer:
    """Appends the same to several logs: plain, idempotent and transactional batches in every codec."""

    def __init__(self, seed: int, now_ms: int) -> None:
        self.chance = random.Random(seed)
        self.now_ms = now_ms
        self.sequences: dict[int, int] = {}
        self.transaction: tuple[int, int] | None = None  # producer id, first offset
        self.markers: list[tuple[int, int]] = []  # producer id, offset

    def write(self, logs: list[PartitionLog]) -> None:
        for _ in range(60):
            self._write_batch(logs)
            if self.transaction is not None and self.chance.random() < 0.5:
                self._end_transaction(logs)
            if self.chance.random() < 0.1:
                self._roll(logs)
        if self.transaction is not None:
            self._end_transaction(logs)
        self._roll(logs)

    def _write_batch(self, logs: list[PartitionLog]) -> None:
        chance = self.chance
        pairs: list[KeyValue] = [
            (b"%d" % chance.randrange(30), None if chance.random() < 0.2 else chance.randbytes(chance.randrange(60)))
            for _ in range(chance.randint(1, 9))
        ]
        kind = chance.choice(["plain", "idempotent", "transactional"])
        producer_id = {"plain": -1, "idempotent": chance.randint(1, 2), "transactional": 100}[kind]
        if kind == "transactional":
            producer_id = self.transaction[0] if self.transaction else chance.randint(100, 102)
            self.transaction = self.transaction or (producer_id, logs[0].log_end_offset)
        sequence = self.sequences.get(producer_id, 0) if producer_id >= 0 else -1
        self.sequences[producer_id] = sequence + len(pairs)
        batch = keyed_batch(
            pairs,
            compression=chance.choice(list(Compression)),
            producer=(producer_id, 0 if producer_id >= 0 else -1, sequence),
            timestamp=self.now_ms + logs[0].log_end_offset,
            is_transactional=kind == "transactional",
        )
        for log in logs:
            append(log, memoryview(bytearray(batch)))

    def _end_transaction(self, logs: list[PartitionLog]) -> None:
        assert self.transaction is not None
        producer_id, first_offset = self.transaction
        offset = logs[0].log_end_offset
        is_commit = self.chance.random() < 0.5
        for log in logs:
            marker = marker_batch(producer_id, is_commit=is_commit, offset=offset)
            segment = log.segments[-1]
            segment.append(marker, offset, read_batch_header(marker).max_timestamp, log.config.index_interval_bytes)
            if not is_commit:
                segment.transaction_index.append(AbortedTransaction(first_offset, producer_id, offset, offset))
            log.log_end_offset = offset + 1
        self.markers.append((producer_id, offset))
        self.transaction = None

    def _roll(self, logs: list[PartitionLog]) -> None:
        for log in logs:
            log.roll()


def batches_in(log: PartitionLog) -> list[tuple[Any, ...]]:
    """Those of data, with everything that matters in them."""
    found = []
    for batch in read_all(log):
        header = read_batch_header(batch)
        if header.record_count and not header.is_control:
            records = [(each.offset, each.timestamp, each.key, each.value) for each in read_records(batch, 1 << 30)]
            horizon = header.delete_horizon_ms
            rest = header._replace(base_timestamp=0, crc=0, batch_length=0)
            found.append((rest, bool(header.attributes & DELETE_HORIZON_FLAG), horizon, records))
    return found


def marker_offsets(log: PartitionLog) -> set[int]:
    headers = [read_batch_header(batch) for batch in read_all(log)]
    return {header.last_offset for header in headers if header.is_control}


def needed_markers(log: PartitionLog, markers: list[tuple[int, int]]) -> set[int]:
    headers = [read_batch_header(batch) for batch in read_all(log)]
    return {
        next(
            offset
            for producer_id, offset in markers
            if producer_id == header.producer_id and offset > header.last_offset
        )
        for header in headers
        if header.is_transactional and not header.is_control
    }


def empty_offsets(log: PartitionLog) -> set[int]:
    headers = [read_batch_header(batch) for batch in read_all(log)]
    return {header.last_offset for header in headers if not header.record_count}


@pytest.mark.parametrize("seed", range(4))
def test_the_same_is_left(cleaner: JsonSession, tmp_path: Path, seed: int) -> None:
    host = real_host()
    start_ms = time.time_ns() // 1_000_000 - 3_600_000
    directories = [tmp_path / "ours" / "t-0", tmp_path / "kafkas" / "t-0"]
    for directory in directories:
        directory.mkdir(parents=True)
    logs = [open_log(host, str(directory), CONFIG) for directory in directories]
    writer = Writer(seed, start_ms)
    clean_offset = 0
    for number in range(ROUNDS):
        writer.write(logs)
        now_ms = start_ms + number * (RETENTION_MS + 1)
        before = batches_in(logs[0])
        assert batches_in(logs[1]) == before
        ours, kafkas = _clean_both(cleaner, host, logs, directories, clean_offset, now_ms)
        logs = [ours, kafkas]
        clean_offset = ours.segments[-1].base_offset
        left = batches_in(ours)
        assert left == batches_in(kafkas)
        assert len(left) < len(before)
        ends = {following.base_offset - 1 for following in ours.segments[1:]}
        assert empty_offsets(ours) - empty_offsets(kafkas) <= ends
        assert empty_offsets(kafkas) <= empty_offsets(ours)
        # Markers may go a round earlier or later than Kafka's, but never before the last batch of their transaction.
        assert needed_markers(ours, writer.markers) <= marker_offsets(ours)
    assert len(marker_offsets(ours)) < len(writer.markers)
    host.workers.close()


def _clean_both(
    cleaner: JsonSession, host: Host, logs: list[PartitionLog], directories: list[Path], clean_offset: int, now_ms: int
) -> list[PartitionLog]:
    for log in logs:
        log.close()
    again = [open_log(host, str(directories[0]), CONFIG)]
    job = job_for(again[0], clean_offset=clean_offset, now_ms=now_ms, delete_retention_ms=RETENTION_MS)
    outcome = adopt(again[0], compact(real_background_context(host.disk), job))
    answer = cleaner.call(
        {
            "directory": str(directories[1]),
            "segment_bytes": SEGMENT_BYTES,
            "delete_retention_ms": RETENTION_MS,
            "clean_offset": clean_offset,
            "now_ms": now_ms,
            "memory_bytes": 1 << 20,
        }
    )
    assert answer["clean_offset"] == outcome.clean_offset
    for stale in directories[1].glob("*.deleted"):
        stale.unlink(missing_ok=True)
    again.append(open_log(host, str(directories[1]), CONFIG))
    return again
