"""The number of producers that the logs of a broker remember together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.log import producer_limits
from odradek.log.producer_limits import CHECKS_KEPT, largest_level, level_to_keep, remove_idle
from odradek.log.producer_state import ProducerState
from odradek.protocol.batch import TRANSACTIONAL_FLAG
from tests.log.batches import NOW_MS
from tests.log.test_producer_state import appended, header


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_limits, "MOST_PRODUCERS", 40)
    monkeypatch.setattr(producer_limits, "FAIR_PRODUCERS", 4)


def write(state: ProducerState, producer_ids: range, *, sequence: int = 0, attributes: int = 0) -> None:
    for producer_id in producer_ids:
        batch = header(sequence, producer_id=producer_id)._replace(attributes=attributes)
        appended(state, batch, 1_000 * sequence + producer_id, NOW_MS - producer_id)


def state_of(producer_ids: range, *, attributes: int = 0) -> ProducerState:
    state = ProducerState()
    write(state, producer_ids, attributes=attributes)
    return state


def check(states: list[ProducerState], times: int = 1) -> int:
    removed = 0
    for _ in range(times):
        level = level_to_keep([len(each.entries) for each in states])
        if level is not None:
            removed += sum(remove_idle(each, level) for each in states)
    return removed


def test_producers_that_go_on_writing_are_kept_whatever_their_number_is() -> None:
    states = [ProducerState() for _ in range(100)]
    for sequence in range(3):
        for state in states:
            write(state, range(50), sequence=sequence)
        assert check(states, CHECKS_KEPT) == 0
    assert all(len(each.entries) == 50 for each in states)


def test_idle_producers_are_removed_until_the_limit_is_met() -> None:
    states = [state_of(range(20)), state_of(range(100, 124))]
    assert check(states, CHECKS_KEPT) == 0
    assert check(states) == 4
    assert [len(each.entries) for each in states] == [20, 20]
    assert check(states, 3) == 0


def test_the_longest_idle_go_first_and_timestamps_of_clients_do_not_matter() -> None:
    state = state_of(range(30))
    check([state, state_of(range(100, 120))])
    write(state, range(10), sequence=1)
    assert remove_idle(state, 20) == 0
    for _ in range(CHECKS_KEPT - 1):
        remove_idle(state, 20)
    assert sorted(state.entries) == [*range(10), *range(20, 30)]


def test_a_flood_removes_no_producers_of_logs_that_have_fewer() -> None:
    quiet, flooded = state_of(range(3)), state_of(range(100, 200))
    assert check([quiet, flooded], CHECKS_KEPT + 1) == 63
    assert sorted(quiet.entries) == [0, 1, 2]


def test_each_log_keeps_a_fair_number() -> None:
    states = [state_of(range(6)) for _ in range(20)]
    check(states, CHECKS_KEPT + 5)
    assert {len(each.entries) for each in states} == {4}


def test_producers_with_an_open_transaction_are_never_removed() -> None:
    state = state_of(range(50), attributes=TRANSACTIONAL_FLAG)
    assert check([state], CHECKS_KEPT + 5) == 0
    assert len(state.entries) == 50


def test_producers_within_the_limit_are_not_read() -> None:
    state = state_of(range(40))
    assert check([state], CHECKS_KEPT + 5) == 0
    assert {entry.idle_checks for entry in state.entries.values()} == {0}


@given(st.lists(st.integers(0, 50)), st.integers(0, 500))
def test_the_largest_are_reduced_to_one_level(counts: list[int], most: int) -> None:
    level = largest_level(sorted(counts), most)
    assert sum(min(count, level) for count in counts) <= most
    if sum(counts) > most:
        assert sum(min(count, level + 1) for count in counts) > most
    else:
        assert all(count <= level for count in counts)
