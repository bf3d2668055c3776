"""Producers that are packed behave as those that are not, and take little memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.log import producer_entries, producer_state
from odradek.log.producer_entries import ProducerEntries
from odradek.log.producer_entry import ProducerEntry
from odradek.log.producer_limits import remove_idle
from odradek.log.producer_snapshot import decode_snapshot, encode_snapshot
from odradek.log.producer_state import PRODUCERS_LIMIT, ProducerState
from odradek.protocol.batch import TRANSACTIONAL_FLAG
from odradek.protocol.control_records import ControlRecordType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_OFFSET
from tests.log.batches import NOW_MS
from tests.log.test_producer_state import header, marker, verify
from tests.memory import memory_of

STEPS = st.lists(
    st.tuples(
        st.integers(1, 12),  # producer
        st.sampled_from(
            ["next", "next", "next", "again", "gap", "transactional", "end", "epoch", "check", "expire", "pack"]
        ),
    ),
    max_size=150,
)


class Writer:
    """One partition: its state, and the next sequence and epoch of each producer."""

    def __init__(self, recent_producers: int) -> None:
        self._recent_producers = recent_producers
        self._sequences: dict[int, int] = {}
        self._epochs: dict[int, int] = {}
        self._offset = 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(producer_entries, "RECENT_PRODUCERS", recent_producers)
            self.state = ProducerState()

    def step(self, producer_id: int, action: str) -> object:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(producer_entries, "RECENT_PRODUCERS", self._recent_producers)
            patch.setattr(producer_state, "PRODUCERS_LIMIT", 8)
            return self._act(producer_id, action)

    def _act(self, producer_id: int, action: str) -> object:
        self._offset += 1
        epoch, sequence = self._epochs.get(producer_id, 0), self._sequences.get(producer_id, 0)
        if action == "expire":
            return self.state.remove_expired(NOW_MS + self._offset, 40)
        if action == "check":
            return remove_idle(self.state, 6)
        if action == "pack":
            self.state.entries.pack_idle()
            return None
        if action == "end":
            ended = marker(producer_id, epoch, self._offset, ControlRecordType.ABORT)
            refusal = self.state.check_marker(ended, 0)
            if refusal is None:
                return self.state.end_transaction(ended, self._offset, NOW_MS + self._offset)
            return refusal
        if action == "epoch":
            epoch, sequence = epoch + 1, 0
        batch = header({"again": max(sequence - 1, 0), "gap": sequence + 2}.get(action, sequence), epoch=epoch)
        batch = batch._replace(producer_id=producer_id)
        if action == "transactional":
            batch = batch._replace(attributes=TRANSACTIONAL_FLAG)
        verdict = self.state.check(batch, verify(self.state, batch) if batch.is_transactional else None)
        if verdict is None:
            self.state.update(batch, self._offset, NOW_MS + self._offset)
            self._epochs[producer_id], self._sequences[producer_id] = epoch, batch.base_sequence + 1
        return verdict


@given(STEPS, st.integers(2, 6))
def test_packed_producers_are_checked_and_changed_as_others(steps: list[tuple[int, str]], recent: int) -> None:
    packing, plain = Writer(recent), Writer(1_000)
    for producer_id, action in steps:
        assert packing.step(producer_id, action) == plain.step(producer_id, action)
        assert packing.state.entries == plain.state.entries
        assert len(packing.state.entries) == len(plain.state.entries)
        idle = [{each: entry.idle_checks for each, entry in some.state.entries.items()} for some in (packing, plain)]
        assert idle[0] == idle[1]
        assert sorted(packing.state.entries.summaries()) == sorted(plain.state.entries.summaries())
        assert sorted(packing.state.entries.ages()) == sorted(
            (each.last_offset, each.last_timestamp, each.producer_id)
            for each in plain.state.entries.summaries()
            if each.current_txn_first_offset == NO_OFFSET
        )


def test_few_producers_are_recent() -> None:
    """So that the test above checks packed ones."""
    writer = Writer(4)
    for producer_id in range(1, 8):
        writer.step(producer_id, "next")
    assert len(writer.state.entries.recent) <= 4 < len(writer.state.entries)


def test_a_producer_that_was_packed_may_repeat_each_of_its_last_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_entries, "RECENT_PRODUCERS", 4)
    state = ProducerState()
    for sequence in range(7):
        state.update(header(sequence), 10 + sequence, NOW_MS)
    for producer_id in range(100, 200):
        state.update(header(0, producer_id=producer_id), producer_id, NOW_MS)
    assert 1 not in state.entries.recent
    for sequence in range(2, 7):
        assert state.check(header(sequence)) == (sequence, 10 + sequence, 0, NOW_MS)
    assert state.check(header(1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert state.check(header(7)) is None


def test_producers_with_an_open_transaction_are_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_entries, "RECENT_PRODUCERS", 4)
    state = ProducerState()
    for producer_id in range(100):
        batch = header(0, producer_id=producer_id)._replace(attributes=TRANSACTIONAL_FLAG if producer_id < 50 else 0)
        state.update(batch, producer_id, NOW_MS)
    assert set(range(50)) <= set(state.entries.recent)
    assert len(state.entries.recent) <= 50 + 4
    loaded = ProducerState()
    loaded.replace(decode_snapshot(encode_snapshot(state.entries.summaries())), 100)
    assert loaded.entries == state.entries
    assert loaded.transactions.open == state.transactions.open


def test_a_verification_changes_a_packed_producer_only_if_it_has_used_no_transactions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client can ask for a verification without a batch that is appended."""
    monkeypatch.setattr(producer_entries, "RECENT_PRODUCERS", 4)
    state = ProducerState()
    state.end_transaction(marker(1, 3), 0, NOW_MS)
    for producer_id in range(2, 50):
        state.update(header(0, producer_id=producer_id), producer_id, NOW_MS)
    recent = set(state.entries.recent)
    assert not {1, 2} & recent
    assert (
        state.begin_verification(1, 2, 0, supports_epoch_bump=False, now_ms=NOW_MS) is ErrorCode.INVALID_PRODUCER_EPOCH
    )
    assert verify(state, header(0, epoch=3)) is not None
    assert set(state.entries.recent) == recent
    assert verify(state, header(1, producer_id=2)) is not None
    assert state.entries[2].uses_transactions


def test_a_partition_with_few_producers_packs_none() -> None:
    entries = ProducerState().entries
    for producer_id in range(producer_entries.RECENT_PRODUCERS):
        entries.add(producer_id, ProducerEntry(0))
    assert len(entries.recent) == producer_entries.RECENT_PRODUCERS
    assert ProducerEntries(entries.items()).recent == entries.recent


def test_producers_that_write_in_turn_become_recent() -> None:
    state = ProducerState()
    for sequence in range(20):
        for producer_id in range(800):
            state.update(header(sequence, producer_id=producer_id), 1_000 * sequence + producer_id, NOW_MS)
    assert len(state.entries.recent) == 800
    for producer_id in range(1_000, 20_000):
        state.update(header(0, producer_id=producer_id), 100_000 + producer_id, NOW_MS)
    assert len(state.entries.recent) <= producer_entries.MOST_RECENT_PRODUCERS


def test_producers_of_one_batch_take_little_memory() -> None:
    """At most what a partition remembers, of ids that a client has invented."""
    state = ProducerState()
    batches = [header(0, producer_id=(1 << 40) + number) for number in range(PRODUCERS_LIMIT)]

    def take() -> None:
        for offset, batch in enumerate(batches):
            state.update(batch, 1_000_000 + offset, NOW_MS + offset)
        assert len(state.entries) == PRODUCERS_LIMIT

    assert memory_of(take).kept_bytes < 60 * PRODUCERS_LIMIT


def test_idle_producers_of_many_partitions_take_little_memory() -> None:
    """A partition with few producers packs none until they are idle."""
    count, partitions = producer_entries.RECENT_PRODUCERS - 1, 100
    states = [ProducerState() for _ in range(partitions)]
    batches = [header(0, producer_id=(1 << 40) + number) for number in range(count)]

    def take() -> None:
        for state in states:
            for offset, batch in enumerate(batches):
                state.update(batch, 1_000_000 + offset, NOW_MS + offset)
        for _ in range(2):
            for state in states:
                state.entries.pack_idle()
        assert {len(state.entries) for state in states} == {count}

    assert memory_of(take).kept_bytes < 60 * count * partitions


def test_producers_that_have_written_since_the_last_check_are_not_packed() -> None:
    state = ProducerState()
    for producer_id in range(10):
        state.update(header(0, producer_id=producer_id), producer_id, NOW_MS)
    state.entries.pack_idle()
    assert len(state.entries.recent) == 10
    for producer_id in range(4):
        state.update(header(1, producer_id=producer_id), 100 + producer_id, NOW_MS)
    state.entries.pack_idle()
    assert sorted(state.entries.recent) == [0, 1, 2, 3]
    assert state.check(header(1, producer_id=9)) is None
    state.update(header(1, producer_id=9), 200, NOW_MS)
    state.entries.pack_idle()
    assert sorted(state.entries.recent) == [9]


def test_room_for_producers_that_wrote_in_turn_is_given_up_when_they_are_idle() -> None:
    state = ProducerState()
    for sequence in range(20):
        for producer_id in range(800):
            state.update(header(sequence, producer_id=producer_id), 1_000 * sequence + producer_id, NOW_MS)
    state.entries.pack_idle()
    assert len(state.entries.recent) == 800
    state.entries.pack_idle()
    assert not state.entries.recent
    for producer_id in range(1_000, 3_000):
        state.update(header(0, producer_id=producer_id), 100_000 + producer_id, NOW_MS)
        assert len(state.entries.recent) <= producer_entries.RECENT_PRODUCERS
