"""Idempotence: a model of what a producer may send, and the snapshot format byte by byte."""

import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from odradek.log import producer_state
from odradek.log.producer_entry import ProducerBatch, ProducerEntry
from odradek.log.producer_snapshot import decode_snapshot, encode_snapshot
from odradek.log.producer_state import CACHED_BATCHES, ProducerState
from odradek.log.transaction_index import AbortedTransaction
from odradek.log.transaction_verification import VerificationGuard
from odradek.protocol.batch import TRANSACTIONAL_FLAG, BatchHeader, read_batch_header
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.malformed import MalformedMessage
from tests.log.batches import NOW_MS, make_batch

LARGEST_SEQUENCE = 2**31 - 1
HEADER = read_batch_header(make_batch())


def header(sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 1) -> BatchHeader:
    return HEADER._replace(
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        record_count=count,
        last_offset_delta=count - 1,
    )


def marker(
    producer_id: int, epoch: int, coordinator_epoch: int = 0, type_: ControlRecordType = ControlRecordType.COMMIT
) -> EndTransactionMarker:
    return EndTransactionMarker(producer_id, epoch, type_, coordinator_epoch)


def verify(state: ProducerState, batch: BatchHeader, *, supports_epoch_bump: bool = False) -> VerificationGuard | None:
    """As if the coordinator had confirmed the transaction."""
    guard = state.begin_verification(
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        supports_epoch_bump=supports_epoch_bump,
        now_ms=NOW_MS,
    )
    assert not isinstance(guard, ErrorCode)
    return guard


def appended(state: ProducerState, batch: BatchHeader, base_offset: int, timestamp: int = NOW_MS) -> None:
    assert state.check(batch, verify(state, batch) if batch.is_transactional else None) is None
    state.update(batch, base_offset + batch.last_offset_delta, timestamp)


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert ProducerState().check(header(41)) is None


def test_an_epoch_below_that_of_no_producer_is_refused() -> None:
    assert ProducerState().check(header(0, epoch=-1)) is None
    assert ProducerState().check(header(0, epoch=-2)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequences_must_follow_each_other() -> None:
    state = ProducerState()
    appended(state, header(0, 3), 0)
    assert state.check(header(4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert state.check(header(1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    appended(state, header(3), 3)


def test_a_repeated_batch_has_its_original_offsets() -> None:
    state = ProducerState()
    for number in range(CACHED_BATCHES + 1):
        appended(state, header(2 * number, 2), 100 + 10 * number)
    for number in range(1, CACHED_BATCHES + 1):
        found = state.check(header(2 * number, 2))
        assert isinstance(found, ProducerBatch)
        assert (found.base_offset, found.last_offset) == (100 + 10 * number, 101 + 10 * number)
    assert state.check(header(0, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert state.check(header(2, 3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_wrap_at_the_largest_int32() -> None:
    state = ProducerState()
    appended(state, header(LARGEST_SEQUENCE - 1, 4), 0)
    found = state.check(header(LARGEST_SEQUENCE - 1, 4))
    assert isinstance(found, ProducerBatch)
    assert (found.base_sequence, found.last_sequence) == (LARGEST_SEQUENCE - 1, 1)
    appended(state, header(2), 4)
    appended(ProducerState(), header(LARGEST_SEQUENCE), 0)
    state = ProducerState()
    appended(state, header(LARGEST_SEQUENCE), 0)
    appended(state, header(0), 1)


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero() -> None:
    state = ProducerState()
    appended(state, header(0, 5, epoch=3), 0)
    assert state.check(header(5, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert state.check(header(5, epoch=4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    appended(state, header(0, epoch=4), 5)
    assert state.check(header(0, 5, epoch=3)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert [batch.last_offset for batch in state.entries[1].batches] == [5]


def test_a_marker_moves_the_epoch() -> None:
    state = ProducerState()
    appended(state, header(0, 5), 0)
    state.end_transaction(marker(1, 1), 5, NOW_MS + 1)
    assert state.check(header(5)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert state.check(header(5, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    appended(state, header(0, epoch=1), 6)
    state.end_transaction(marker(2, 7), 7, NOW_MS)
    assert state.check(header(0, epoch=6, producer_id=2)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_transaction_is_open_from_its_first_batch_to_its_marker() -> None:
    state = ProducerState()
    transactional = header(0, 3)._replace(attributes=TRANSACTIONAL_FLAG)
    appended(state, header(0, producer_id=2), 9)
    appended(state, transactional, 10)
    appended(state, transactional._replace(base_sequence=3), 20)
    assert (state.entries[1].current_txn_first_offset, state.entries[2].current_txn_first_offset) == (10, -1)
    state.end_transaction(marker(1, 0, coordinator_epoch=4), 23, NOW_MS + 5)
    entry = state.entries[1]
    assert (entry.current_txn_first_offset, entry.coordinator_epoch, entry.last_timestamp) == (-1, 4, NOW_MS + 5)
    assert entry.next_sequence == 6, "a marker has no sequence number, and keeps the producer's"


def test_a_marker_of_an_older_producer_or_coordinator_is_fenced() -> None:
    state = ProducerState()
    assert state.check_marker(marker(1, 0), 1) is None
    state.end_transaction(marker(1, 3, coordinator_epoch=7), 0, NOW_MS)
    for version in (0, 1, 2):
        assert state.check_marker(marker(1, 2, coordinator_epoch=7), version) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert state.check_marker(marker(1, 3, coordinator_epoch=6), version) is (
            ErrorCode.TRANSACTION_COORDINATOR_FENCED
        )
        assert state.check_marker(marker(1, 4, coordinator_epoch=7), version) is None


def test_silent_producers_expire_unless_in_a_transaction() -> None:
    state = ProducerState()
    for producer_id in (1, 2, 3):
        appended(state, header(0, producer_id=producer_id), producer_id, NOW_MS + producer_id)
    appended(state, header(1)._replace(attributes=TRANSACTIONAL_FLAG), 4, NOW_MS + 1)
    assert state.remove_expired(NOW_MS + 1002, 1000) == 1
    assert sorted(state.entries) == [1, 3]


def test_the_number_of_producers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_state, "PRODUCERS_LIMIT", 16)
    state = ProducerState()
    for producer_id in range(100):
        appended(state, header(0, producer_id=producer_id), producer_id, NOW_MS + producer_id)
    assert len(state.entries) <= 16
    assert 99 in state.entries
    assert 0 not in state.entries


def test_a_producer_that_wrote_last_is_not_forgotten_whatever_its_timestamps_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(producer_state, "PRODUCERS_LIMIT", 16)
    state = ProducerState()
    for sequence in range(2):
        for producer_id in range(15):
            appended(state, header(sequence, producer_id=producer_id), 100 * sequence + producer_id)
        appended(state, header(sequence, producer_id=50), 100 * sequence + 50, NOW_MS - 600_000)
    appended(state, header(0, producer_id=99), 200)
    assert len(state.entries) < 16
    assert isinstance(state.check(header(1, producer_id=50)), ProducerBatch)


def test_producers_with_no_batch_to_send_again_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A marker of a newer epoch makes the batches of its producer obsolete."""
    monkeypatch.setattr(producer_state, "PRODUCERS_LIMIT", 8)
    state = ProducerState()
    for producer_id in range(6):
        appended(state, header(0, producer_id=producer_id), producer_id)
    state.end_transaction(marker(6, 1), 6, NOW_MS + 1)
    state.end_transaction(marker(7, 1), 7, NOW_MS)
    appended(state, header(0, producer_id=8), 8)
    assert sorted(state.entries) == [0, 1, 2, 3, 4, 5, 6, 8]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(-5, 5), st.booleans()), max_size=80), st.integers(0, 80))
def test_a_state_that_is_loaded_from_a_snapshot_forgets_the_same_producers(
    writes: list[tuple[int, int, bool]], snapshot_offset: int
) -> None:
    """Also if a leader has written the snapshot and a follower reads the log from its start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(producer_state, "PRODUCERS_LIMIT", 8)
        state, loaded = ProducerState(), ProducerState()
        for offset, (producer_id, timestamp, is_marker) in enumerate(writes):
            if offset == snapshot_offset:
                stored = dict(decode_snapshot(encode_snapshot(state.entries.summaries())))
                loaded.replace(sorted(stored.items()), offset)
            for each in (state, loaded):
                entry = each.entries.get(producer_id)
                if is_marker:
                    each.end_transaction(marker(producer_id, entry.epoch + 1 if entry else 0), offset, timestamp)
                else:
                    epoch, sequence = (entry.epoch, entry.next_sequence) if entry else (0, 0)
                    each.update(header(sequence, epoch=epoch, producer_id=producer_id), offset, timestamp)
            assert sorted(state.entries) == sorted(loaded.entries)


def test_a_state_with_more_producers_than_the_limit_is_reduced_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a log of Apache Kafka may have any number."""
    state = ProducerState()
    for producer_id in range(40):
        appended(state, header(0, producer_id=producer_id), producer_id, NOW_MS + producer_id)
    monkeypatch.setattr(producer_state, "PRODUCERS_LIMIT", 8)
    appended(state, header(0, producer_id=40), 40, NOW_MS + 40)
    assert sorted(state.entries) == [*range(33, 41)]


def test_open_transactions_are_not_counted_and_not_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_state, "PRODUCERS_LIMIT", 16)
    state = ProducerState()
    for producer_id in range(40):
        appended(state, transactional(0, producer_id=producer_id), producer_id, NOW_MS + producer_id)
    for producer_id in range(100, 200):
        appended(state, header(0, producer_id=producer_id), producer_id, NOW_MS + producer_id)
    assert [each for each in state.entries if each < 100] == [*range(40)]
    assert len(state.entries) <= 40 + 16


def transactional(sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 1) -> BatchHeader:
    return header(sequence, count, epoch=epoch, producer_id=producer_id)._replace(attributes=TRANSACTIONAL_FLAG)


def test_a_transaction_begins_only_with_a_verification() -> None:
    state = ProducerState()
    assert state.check(transactional(0)) is ErrorCode.INVALID_TXN_STATE
    assert state.check(transactional(0), VerificationGuard()) is ErrorCode.INVALID_TXN_STATE
    guard = verify(state, transactional(0))
    assert state.check(transactional(0), guard) is None
    state.update(transactional(0), 0, NOW_MS)
    assert state.check(transactional(1)) is None, "the transaction is open"
    assert state.has_open_transaction(1, 0)
    state.end_transaction(marker(1, 0), 1, NOW_MS)
    assert state.check(transactional(1), guard) is ErrorCode.INVALID_TXN_STATE, "a late batch of the ended transaction"
    assert isinstance(state.check(transactional(0)), ProducerBatch), "a duplicate needs no verification"


def test_a_batch_of_another_epoch_needs_a_verification_of_its_own() -> None:
    state = ProducerState()
    appended(state, transactional(0, epoch=3), 0)
    assert state.check(transactional(0, epoch=4)) is ErrorCode.INVALID_TXN_STATE
    assert state.check(transactional(0, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    refused = state.begin_verification(1, 2, 0, supports_epoch_bump=False, now_ms=NOW_MS)
    assert refused is ErrorCode.INVALID_PRODUCER_EPOCH
    assert state.begin_verification(1, 3, 1, supports_epoch_bump=False, now_ms=NOW_MS) is None
    appended(state, transactional(0, epoch=4), 1)
    assert state.transactions.open == {1: 0}, "the transaction goes on"


def test_a_producer_in_a_transaction_writes_only_to_it() -> None:
    state = ProducerState()
    appended(state, transactional(0), 0)
    assert state.check(header(1)) is ErrorCode.INVALID_TXN_STATE
    assert state.check(header(0, producer_id=2)) is None
    state.end_transaction(marker(1, 0), 1, NOW_MS)
    assert state.check(header(1)) is None


def test_a_marker_of_version_2_has_a_higher_epoch_than_its_transaction() -> None:
    state = ProducerState()
    appended(state, transactional(0, epoch=3), 0)
    assert state.check_marker(marker(1, 3), 1) is None
    assert state.check_marker(marker(1, 3), 2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert state.check_marker(marker(1, 4), 2) is None
    state.end_transaction(marker(1, 4), 1, NOW_MS)
    assert state.check_marker(marker(1, 4), 2) is None, "the marker is repeated"


def test_an_aborted_transaction_tells_the_begin_of_the_oldest_open_one() -> None:
    state = ProducerState()
    appended(state, transactional(0, producer_id=1), 0)
    appended(state, transactional(0, producer_id=2), 1)
    aborted = state.end_transaction(marker(2, 0, type_=ControlRecordType.ABORT), 2, NOW_MS)
    assert aborted == AbortedTransaction(1, 2, 2, last_stable_offset=0)
    assert state.end_transaction(marker(1, 0), 3, NOW_MS) is None, "it was committed"
    assert state.end_transaction(marker(1, 0, type_=ControlRecordType.ABORT), 4, NOW_MS) is None, "it had no data"


def test_batches_of_the_group_coordinator_have_no_sequence() -> None:
    state = ProducerState()
    batch = transactional(-1, 3, epoch=2)
    appended(state, batch, 0)
    appended(state, batch, 3)
    assert state.check(transactional(-1, epoch=1)) is ErrorCode.INVALID_PRODUCER_EPOCH
    loaded = ProducerState()
    loaded.replace(decode_snapshot(encode_snapshot(state.entries.summaries())), 6)
    assert loaded.transactions.open == {1: 0}
    assert loaded.entries[1].batches == [ProducerBatch(-1, 5, 2, NOW_MS)]
    assert loaded.entries[1].next_sequence == 0


@given(
    st.lists(
        st.tuples(
            st.integers(1, 2),  # producer
            st.integers(0, 3),  # epoch
            st.integers(-3, 1),  # where its sequence begins, relative to what should come
            st.integers(1, 3),  # records
        ),
        max_size=60,
    )
)
def test_the_rules_against_a_model_that_keeps_everything(sent: list[tuple[int, int, int, int]]) -> None:
    state = ProducerState()
    history: dict[int, list[tuple[int, int, int, int]]] = {}  # epoch, base sequence, count, base offset
    next_offset = 0
    for producer_id, epoch, distance, count in sent:
        earlier = history.setdefault(producer_id, [])
        last_epoch = earlier[-1][0] if earlier else None
        of_epoch = [batch for batch in earlier if batch[0] == epoch]
        expected_sequence = of_epoch[-1][1] + of_epoch[-1][2] if of_epoch and epoch == last_epoch else 0
        sequence = max(0, expected_sequence + distance)
        batch = header(sequence, count, epoch=epoch, producer_id=producer_id)
        verdict = state.check(batch)
        if last_epoch is not None and epoch < last_epoch:
            assert verdict is ErrorCode.INVALID_PRODUCER_EPOCH
            continue
        repeated = [offset for _, base, size, offset in of_epoch[-CACHED_BATCHES:] if (base, size) == (sequence, count)]
        if repeated:
            assert isinstance(verdict, ProducerBatch)
            assert verdict.base_offset == repeated[-1]
        elif earlier and sequence != expected_sequence:
            assert verdict is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        else:
            appended(state, batch, next_offset)
            earlier.append((epoch, sequence, count, next_offset))
            next_offset += count


def test_the_snapshot_is_kafkas_byte_by_byte() -> None:
    state = ProducerState()
    appended(state, header(7, 3, epoch=2, producer_id=4001), 90, NOW_MS)
    entry = struct.pack(">qhiqiqiq", 4001, 2, 9, 92, 2, NOW_MS, -1, -1)
    body = struct.pack(">i", 1) + entry
    assert encode_snapshot(state.entries.summaries()) == struct.pack(">hI", 1, crc32c(body)) + body


def test_a_snapshot_gives_back_the_last_batch_of_each_producer() -> None:
    state = ProducerState()
    for number in range(3):
        appended(state, header(number, producer_id=1), number)
    state.end_transaction(marker(2, 5), 3, NOW_MS)
    state.entries[2].coordinator_epoch = 8
    state.entries[2].current_txn_first_offset = 77
    loaded = dict(decode_snapshot(encode_snapshot(state.entries.summaries())))
    state.entries[1].batches = state.entries[1].batches[-1:]
    assert loaded == state.entries
    assert isinstance(loaded[1], ProducerEntry)
    assert dict(decode_snapshot(encode_snapshot(()))) == {}


@given(st.integers(0, 55), st.integers(1, 255))
def test_a_damaged_snapshot_is_noticed(position: int, change: int) -> None:
    state = ProducerState()
    appended(state, header(0), 0)
    data = bytearray(encode_snapshot(state.entries.summaries()))
    data[position] ^= change
    with pytest.raises(MalformedMessage):
        decode_snapshot(bytes(data))
    with pytest.raises(MalformedMessage):
        decode_snapshot(bytes(data[:position]))
