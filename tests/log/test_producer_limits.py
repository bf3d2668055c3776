"""The number of producers that the logs of a broker remember together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.log import producer_limits
from odradek.log.producer_limits import AddedProducers, largest_level, remove_excess
from odradek.log.producer_state import ProducerState
from odradek.protocol.batch import TRANSACTIONAL_FLAG
from tests.log.batches import NOW_MS
from tests.log.test_producer_state import appended, header


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_limits, "MOST_SINGLE_BATCH_PRODUCERS", 16)
    monkeypatch.setattr(producer_limits, "MOST_PRODUCERS", 40)


def state_of(producer_ids: range, *, batches: int = 1, attributes: int = 0) -> ProducerState:
    state = ProducerState()
    for number, producer_id in enumerate(producer_ids):
        for sequence in range(batches):
            batch = header(sequence, producer_id=producer_id)._replace(attributes=attributes)
            appended(state, batch, batches * number + sequence, NOW_MS + number)
    return state


def test_logs_share_a_limit() -> None:
    states = [state_of(range(8)), state_of(range(100, 109))]
    assert remove_excess(states) == 1
    assert [len(each.entries) for each in states] == [8, 8]
    assert 100 not in states[1].entries


def test_the_log_with_the_most_producers_gives_up_its_oldest() -> None:
    quiet, flooded = state_of(range(3)), state_of(range(100, 200))
    assert remove_excess([quiet, flooded]) == 87
    assert sorted(quiet.entries) == [0, 1, 2]
    assert sorted(flooded.entries) == [*range(187, 200)]


def test_producers_that_go_on_are_kept_before_those_with_one_batch() -> None:
    state = state_of(range(20), batches=2)
    for producer_id in range(100, 200):
        appended(state, header(0, producer_id=producer_id), producer_id, NOW_MS + producer_id)
    remove_excess([state])
    assert [each for each in state.entries if each < 100] == [*range(20)]
    assert len(state.entries) == 20 + 16


def test_producers_that_go_on_have_a_limit_too() -> None:
    state = state_of(range(48), batches=2)
    assert remove_excess([state]) == 8
    assert sorted(state.entries) == [*range(8, 48)]


def test_producers_with_an_open_transaction_are_never_removed() -> None:
    state = state_of(range(50), attributes=TRANSACTIONAL_FLAG)
    assert remove_excess([state]) == 0
    assert len(state.entries) == 50


def test_the_number_is_checked_as_producers_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_limits, "ADDED_BETWEEN_CHECKS", 4)
    states = [ProducerState(), ProducerState()]
    added = AddedProducers(lambda: remove_excess(states))
    for state in states:
        state.on_added = added.add
    for producer_id in range(200):
        appended(states[producer_id % 2], header(0, producer_id=producer_id), producer_id, NOW_MS + producer_id)
        assert sum(len(each.entries) for each in states) <= 16 + 4
    assert 199 in states[1].entries


@given(st.lists(st.integers(0, 50)), st.integers(0, 500))
def test_the_largest_are_reduced_to_one_level(counts: list[int], most: int) -> None:
    level = largest_level(counts, most)
    assert sum(min(count, level) for count in counts) <= most
    if sum(counts) > most:
        assert sum(min(count, level + 1) for count in counts) > most
    else:
        assert all(count <= level for count in counts)
