"""The ledger of redrives is a set of positions, whatever the order in which its records are written and read."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from odradek.pipelines.letters.ledger import PART_OFFSETS, Ledger, key_of, ranges_of

POSITIONS = st.sets(st.tuples(st.integers(0, 2), st.integers(0, 3 * PART_OFFSETS)), max_size=40)


@given(st.lists(POSITIONS, max_size=6))
def test_a_ledger_that_is_read_again_contains_what_was_added(steps: list[set[tuple[int, int]]]) -> None:
    written: dict[bytes, bytes] = {}  # as the compacted topic keeps them
    for positions in steps:
        ledger = Ledger("dead", "id")
        for key, value in written.items():
            ledger.take(key, value)
        written |= dict(ledger.add(positions))
    read = Ledger("dead", "id")
    for key, value in written.items():
        read.take(key, value)
    everything = set().union(*steps)
    for partition in range(3):
        for offset in {0, 1, PART_OFFSETS, *(offset for _, offset in everything)}:
            assert ((partition, offset) in read) == ((partition, offset) in everything)
    assert all(len(value) < 50_000 for value in written.values())


@given(st.sets(st.integers(0, 60)))
def test_ranges_are_the_runs_of_offsets(offsets: set[int]) -> None:
    ranges = list(ranges_of(sorted(offsets)))
    assert {each for first, last in ranges for each in range(first, last + 1)} == offsets
    assert all(after[0] > before[1] + 1 for before, after in itertools.pairwise(ranges))


def test_parts_of_deleted_letters_are_removed() -> None:
    ledger = Ledger("dead", "id")
    ledger.add([(0, 5), (0, PART_OFFSETS + 5), (1, 5)])
    assert ledger.outdated({0: PART_OFFSETS, 1: PART_OFFSETS - 1}) == [key_of("dead", "id", (0, 0))]
    ledger.take(key_of("dead", "id", (0, 0)), None)
    assert (0, 5) not in ledger
    assert (0, PART_OFFSETS + 5) in ledger


def test_parts_of_a_former_topic_of_the_same_name_are_removed() -> None:
    former = Ledger("dead", "former")
    ledger = Ledger("dead", "id")
    for key, value in former.add([(0, 5), (1, 5)]):
        ledger.take(key, value)
    assert (0, 5) not in ledger
    ledger.take(key_of("dead", "former", (1, 0)), None)
    assert ledger.outdated({0: 0, 1: 0}) == [key_of("dead", "former", (0, 0))]


def test_records_of_others_are_ignored() -> None:
    ledger = Ledger("dead", "id")
    for key, value in (
        (None, b"{}"), (b"?", b"{}"), (key_of("other", "id", (0, 0)), b'{"offsets":[[1,2]]}'),
        (key_of("dead", "id", (0, 0)), b"?"),
        (key_of("dead", "other", (0, 0)), b'{"offsets":[[1,2]]}'), (b'["dead","id",1e999,0]', b"{}"),
        (key_of("dead", "id", (0, 0)), b'{"offsets":[["x","y"]]}'),
    ):  # fmt: skip
        ledger.take(key, value)
    assert (0, 1) not in ledger
    ledger.take(key_of("dead", "id", (0, 0)), b'{"offsets":[[1,1000000000000]]}')
    assert (0, PART_OFFSETS - 1) in ledger
    assert (0, PART_OFFSETS) not in ledger
