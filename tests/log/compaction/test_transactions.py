"""Aborted data goes, markers stay as long as something refers to them, and the index tells of what is left."""

import pytest

from odradek.log.compaction.segment_reader import DamagedSegment
from odradek.log.compaction.transactions import TransactionTracker
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.log.stored_segment import file_path
from odradek.log.transaction_index import (
    TRANSACTION_INDEX_SUFFIX,
    AbortedTransaction,
    checksum_path,
    decode_transaction_index,
    encode_transaction_index,
)
from odradek.protocol.batch import assign_offset, read_batch_header
from odradek.protocol.malformed import MalformedMessage
from tests.log.batches import EVERYTHING, NOW_MS, open_log
from tests.log.compaction.compacted_logs import (
    DAY_MS,
    KeyValue,
    compact_log,
    headers_of,
    job_for,
    keyed_batch,
    marker_batch,
    records_of,
)
from tests.simulation.simulated_host import Simulation

CONFIG = LogConfig(is_compacted=True, message_timestamp_after_max_ms=EVERYTHING)
DIRECTORY = "/data/t-0"


class WrittenLog:
    """The files of a log with transactions, as Apache Kafka's broker would have written them."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        simulation.disk.make_directories(DIRECTORY)
        self.base_offset = self.offset = 0
        self.data = b""
        self.aborted: list[AbortedTransaction] = []

    def put(self, producer_id: int, *pairs: KeyValue, sequence: int = 0) -> int:
        batch = keyed_batch(pairs, producer=(producer_id, 0, sequence), is_transactional=True)
        assign_offset(batch, 0, self.offset, 0)
        self.data += bytes(batch)
        self.offset += len(pairs)
        return self.offset - len(pairs)

    def end(self, producer_id: int, *, is_commit: bool, first_offset: int = 0) -> None:
        self.data += bytes(marker_batch(producer_id, is_commit=is_commit, offset=self.offset))
        if not is_commit:
            self.aborted.append(AbortedTransaction(first_offset, producer_id, self.offset, self.offset + 1))
        self.offset += 1

    def roll(self) -> None:
        disk = self.simulation.disk
        disk.open(file_path(DIRECTORY, self.base_offset, ".log"), create=True).write_at(self.data, 0)
        if self.aborted:
            path = file_path(DIRECTORY, self.base_offset, TRANSACTION_INDEX_SUFFIX)
            disk.open(path, create=True).write_at(encode_transaction_index(self.aborted), 0)
        self.base_offset, self.data, self.aborted = self.offset, b"", []

    def open(self) -> PartitionLog:
        self.roll()
        log = open_log(self.simulation.host, DIRECTORY, CONFIG, clean_shutdown=False)
        log.roll()
        log.producers.replace((), log.log_end_offset)  # expired: no batch is kept for a producer's sake
        return log


def offsets(log: PartitionLog) -> list[int]:
    return [record.offset for record in records_of(log)]


def aborted_in(simulation: Simulation, base_offset: int) -> list[AbortedTransaction]:
    path = file_path(DIRECTORY, base_offset, TRANSACTION_INDEX_SUFFIX)
    return list(decode_transaction_index(simulation.disk.read_file(path))) if simulation.disk.exists(path) else []


def test_aborted_records_go_and_shadow_nothing(simulation: Simulation) -> None:
    written = WrittenLog(simulation)
    written.put(1, (b"a", b"committed"))
    written.end(1, is_commit=True)
    written.put(2, (b"a", b"aborted"), (b"b", b"aborted"))
    written.end(2, is_commit=False, first_offset=2)
    written.put(3, (b"z", b"the last"))
    written.end(3, is_commit=True)
    log = written.open()
    compact_log(simulation, log)
    assert offsets(log) == [0, 5]
    # The marker of the abort stays: in this round there was data of it.
    assert [header.base_offset for header in headers_of(log) if header.is_control] == [1, 4, 6]
    assert aborted_in(simulation, 0) == [AbortedTransaction(2, 2, 4, 5)]


def test_a_marker_without_data_gets_a_deadline_and_goes_after_it(simulation: Simulation) -> None:
    written = WrittenLog(simulation)
    written.put(2, (b"a", b"aborted"))
    written.end(2, is_commit=False, first_offset=0)
    written.put(1, (b"b", b"1"))
    written.end(1, is_commit=True)
    log = written.open()
    compact_log(simulation, log)
    assert [header.delete_horizon_ms for header in headers_of(log)] == [None, None, None]
    compact_log(simulation, log, job_for(log, now_ms=NOW_MS + 5))
    assert [header.delete_horizon_ms for header in headers_of(log)] == [NOW_MS + 5 + DAY_MS, None, None]
    assert aborted_in(simulation, 0) == []
    compact_log(simulation, log, job_for(log, now_ms=NOW_MS + 4 + DAY_MS))
    assert [header.base_offset for header in headers_of(log)] == [1, 2, 3]
    compact_log(simulation, log, job_for(log, now_ms=NOW_MS + 5 + DAY_MS))
    assert [header.base_offset for header in headers_of(log)] == [2, 3]


def test_a_transaction_may_end_in_a_later_segment(simulation: Simulation) -> None:
    written = WrittenLog(simulation)
    written.put(1, (b"a", b"1"))
    written.end(1, is_commit=True)
    written.put(2, (b"a", b"aborted"))
    written.roll()
    written.end(2, is_commit=False, first_offset=2)
    written.put(2, (b"c", b"committed later by the same producer"))
    written.end(2, is_commit=True)
    log = written.open()
    compact_log(simulation, log)
    assert offsets(log) == [0, 4]
    compact_log(simulation, log, job_for(log, clean_offset=3))
    assert offsets(log) == [0, 4]


def test_an_index_that_was_cut_off_is_no_index() -> None:
    whole = [AbortedTransaction(1, 2, 3, 4), AbortedTransaction(5, 6, 7, 8)]
    assert list(decode_transaction_index(encode_transaction_index(whole))) == whole
    with pytest.raises(MalformedMessage):
        list(decode_transaction_index(encode_transaction_index(whole)[:-1]))


@pytest.mark.parametrize("is_damaged", [False, True])
def test_an_index_that_is_being_written_is_read_again(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch, is_damaged: bool
) -> None:
    """A segment that is rolled during the compaction gets its index, which is not written at once."""
    written = WrittenLog(simulation)
    written.put(1, (b"a", b"aborted"))
    written.end(1, is_commit=False, first_offset=0)
    written.put(2, (b"b", b"committed"))
    written.end(2, is_commit=True)
    log = written.open()
    path = file_path(DIRECTORY, 0, TRANSACTION_INDEX_SUFFIX)
    whole = simulation.disk.read_file(path)
    reads: list[str] = []

    def read_file(name: str) -> bytes:
        if name != path:
            return read(name)
        reads.append(name)
        return whole[:-1] if is_damaged or len(reads) == 1 else whole

    read = simulation.disk.read_file
    monkeypatch.setattr(simulation.disk, "read_file", read_file)
    if is_damaged:
        with pytest.raises(DamagedSegment):
            compact_log(simulation, log)
    else:
        compact_log(simulation, log)
        assert offsets(log) == [2]
    assert len(reads) > 1


@pytest.mark.parametrize("clean_offset", [0, 2])
@pytest.mark.parametrize(
    "listed", [[], [AbortedTransaction(2, 2, 4, 5)], [AbortedTransaction(3, 1, 4, 5), AbortedTransaction(2, 2, 5, 6)]]
)
def test_markers_that_contradict_the_index_stop_the_compaction(
    simulation: Simulation, clean_offset: int, listed: list[AbortedTransaction]
) -> None:
    """An index without a checksum, as Apache Kafka has it. Aborted records would be kept without their marker, or
    committed ones removed."""
    written = WrittenLog(simulation)
    written.put(3, (b"z", b"committed"))
    written.end(3, is_commit=True)
    written.put(2, (b"a", b"committed"))
    written.put(1, (b"b", b"aborted"))
    written.end(1, is_commit=False, first_offset=3)
    written.end(2, is_commit=True)
    log = written.open()
    path = file_path(DIRECTORY, 0, TRANSACTION_INDEX_SUFFIX)
    simulation.disk.remove(checksum_path(path))
    simulation.disk.replace_file(path, encode_transaction_index(listed))
    before = simulation.disk.read_file(file_path(DIRECTORY, 0, ".log"))
    with pytest.raises(DamagedSegment, match="transaction index"):
        compact_log(simulation, log, job_for(log, clean_offset=clean_offset))
    assert simulation.disk.read_file(file_path(DIRECTORY, 0, ".log")) == before


def test_a_missing_index_stops_the_compaction(simulation: Simulation) -> None:
    written = WrittenLog(simulation)
    written.put(1, (b"a", b"aborted"))
    written.end(1, is_commit=False, first_offset=0)
    log = written.open()
    simulation.disk.remove(file_path(DIRECTORY, 0, TRANSACTION_INDEX_SUFFIX))
    with pytest.raises(DamagedSegment, match="missing"):
        compact_log(simulation, log)


def test_a_marker_of_another_kind_stays() -> None:
    header = read_batch_header(marker_batch(1, is_commit=True, offset=0))
    tracker = TransactionTracker([])
    assert not tracker.is_marker_discardable(header, b"\x00\x00\x00\x07")
    assert tracker.is_marker_discardable(header, None)
    with pytest.raises(MalformedMessage):
        tracker.is_marker_discardable(header, b"\x00")
