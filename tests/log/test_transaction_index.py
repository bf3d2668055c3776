"""The index of aborted transactions: Kafka's format byte by byte, and the search in it, in memory and in the file."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.log.transaction_index import (
    AbortedTransaction,
    TransactionIndex,
    decode_transaction_index,
    encode_transaction_index,
)
from odradek.protocol.malformed import MalformedMessage
from tests.simulation.simulated_host import Simulation

PATH = "/data/00000000000000000100.txnindex"
ABORTED = [
    AbortedTransaction(90, 7, 105, 101),
    AbortedTransaction(101, 8, 109, 110),
    AbortedTransaction(120, 7, 121, 122),
]


def new_index(simulation: Simulation, aborted: list[AbortedTransaction]) -> TransactionIndex:
    simulation.disk.make_directories("/data")
    index = TransactionIndex(simulation.disk, PATH)
    index.create()
    for each in aborted:
        index.append(each)
    return index


def test_an_entry_is_kafkas_byte_by_byte() -> None:
    assert encode_transaction_index(ABORTED[:1]) == struct.pack(">hqqqq", 0, 7, 90, 105, 101)
    assert list(decode_transaction_index(encode_transaction_index(ABORTED))) == ABORTED


@pytest.mark.parametrize(
    "data",
    [
        encode_transaction_index(ABORTED)[:-1],
        b"\x00\x01" + encode_transaction_index(ABORTED)[2:],
        encode_transaction_index(reversed(ABORTED)),
        encode_transaction_index([ABORTED[0], ABORTED[0]]),
        encode_transaction_index([AbortedTransaction(5, 7, 4, 4)]),
    ],
    ids=["cut", "version", "order", "twice", "ends before it begins"],
)
def test_damaged_data_is_refused(simulation: Simulation, data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        list(decode_transaction_index(data))
    index = new_index(simulation, [])
    simulation.disk.replace_file(PATH, data)
    index.has_file = True
    assert not index.load()
    assert not index.is_sound(0, 1000)
    index.release()
    assert not index.copy_before(1000).is_loaded


def test_there_is_a_file_only_for_entries(simulation: Simulation) -> None:
    index = new_index(simulation, [])
    index.write()
    assert (index.is_empty, simulation.disk.exists(PATH)) == (True, False)
    index.append(ABORTED[0])
    assert not index.is_empty
    index.write()
    assert simulation.disk.read_file(PATH) == encode_transaction_index(ABORTED[:1])
    index.create()
    index.write()
    assert (index.is_empty, simulation.disk.exists(PATH)) == (True, False)


def test_the_file_of_another_segment_is_not_sound(simulation: Simulation) -> None:
    index = new_index(simulation, ABORTED)
    index.write()
    assert index.is_sound(100, 122)
    assert not index.is_sound(106, 122)
    assert not index.is_sound(100, 121)


@pytest.mark.parametrize("is_in_memory", [True, False])
def test_a_copy_has_what_ended_before_an_offset(simulation: Simulation, is_in_memory: bool) -> None:
    index = new_index(simulation, ABORTED)
    index.write()
    if not is_in_memory:
        index.release()
    for offset, count in ((105, 0), (106, 1), (121, 2), (122, 3)):
        assert index.copy_before(offset).collect(0, 1000)[0] == ABORTED[:count]
    assert simulation.disk.read_file(PATH) == encode_transaction_index(ABORTED), "until it is written"


@given(
    gaps=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 12)), max_size=30),
    first=st.integers(0, 160),
    size=st.integers(0, 160),
)
def test_the_search_finds_what_overlaps(gaps: list[tuple[int, int]], first: int, size: int) -> None:
    """Also what began before the range and what ends after it; and it stops where no later one can overlap."""
    simulation = Simulation(0)
    aborted: list[AbortedTransaction] = []
    last_offset = 0
    for number, (gap, length) in enumerate(gaps):
        last_offset += gap
        aborted.append(AbortedTransaction(max(0, last_offset - length), number, last_offset, last_offset + 1))
    # The last stable offset is the begin of the oldest transaction that ends later.
    aborted = [
        each._replace(
            last_stable_offset=min([each.last_offset + 1, *(later.first_offset for later in aborted[i + 1 :])])
        )
        for i, each in enumerate(aborted)
    ]
    index = new_index(simulation, aborted)
    index.write()
    in_memory = index.collect(first, first + size)
    index.release()
    assert index.collect(first, first + size) == in_memory
    expected = [each for each in aborted if each.last_offset >= first and each.first_offset < first + size]
    found, is_complete = in_memory
    assert found == expected
    assert is_complete == any(each.last_offset >= first and each.last_stable_offset >= first + size for each in aborted)
    simulation.close()
