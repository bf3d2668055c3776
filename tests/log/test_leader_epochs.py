"""Leader epochs: Kafka's answers to OffsetForLeaderEpoch, and Kafka's checkpoint file."""

import pytest

from odradek.log.leader_epochs import EpochEntry, LeaderEpochs, decode_leader_epochs, encode_leader_epochs
from odradek.protocol.malformed import MalformedMessage


def make_epochs() -> LeaderEpochs:
    return LeaderEpochs([EpochEntry(2, 0), EpochEntry(4, 10), EpochEntry(7, 30)])


@pytest.mark.parametrize(
    ("asked", "answer"),
    [(7, (7, 50)), (8, (-1, -1)), (6, (4, 30)), (4, (4, 30)), (3, (2, 10)), (2, (2, 10)), (1, (1, 0)), (-1, (-1, -1))],
)
def test_the_end_of_an_epoch_is_where_the_next_begins(asked: int, answer: tuple[int, int]) -> None:
    assert make_epochs().end_offset(asked, 50) == answer


def test_without_epochs_nothing_is_known() -> None:
    assert LeaderEpochs().end_offset(0, 50) == (-1, -1)
    assert LeaderEpochs().epoch_at(0) == -1


def test_only_a_later_epoch_is_noted() -> None:
    epochs = make_epochs()
    epochs.assign(7, 40)
    epochs.assign(6, 45)
    assert (epochs.entries, epochs.is_dirty) == (make_epochs().entries, False)
    epochs.assign(9, 40)
    assert epochs.entries[-1] == (9, 40)
    assert epochs.is_dirty


def test_an_epoch_that_wrote_nothing_gives_way() -> None:
    epochs = make_epochs()
    epochs.assign(8, 30)
    assert epochs.entries == (EpochEntry(2, 0), EpochEntry(4, 10), EpochEntry(8, 30))


def test_truncation_from_either_end() -> None:
    epochs = make_epochs()
    epochs.truncate_from_end(30)
    assert (epochs.entries[-1], epochs.latest_epoch) == (EpochEntry(4, 10), 4)
    epochs.truncate_from_start(5)
    assert list(epochs.entries) == [(2, 5), (4, 10)]
    epochs.truncate_from_start(10)
    assert list(epochs.entries) == [(4, 10)]
    epochs.is_dirty = False
    epochs.truncate_from_start(10)
    epochs.truncate_from_end(11)
    assert not epochs.is_dirty
    epochs.clear()
    assert (list(epochs.entries), epochs.latest_epoch) == ([], -1)


def test_the_epoch_of_an_offset() -> None:
    assert [make_epochs().epoch_at(offset) for offset in (0, 9, 10, 29, 30, 99)] == [2, 2, 4, 4, 7, 7]


def test_the_file_is_kafkas() -> None:
    data = b"0\n3\n2 0\n4 10\n7 30\n"
    assert encode_leader_epochs(make_epochs().entries) == data
    assert tuple(decode_leader_epochs(data)) == make_epochs().entries


@pytest.mark.parametrize("data", [b"", b"0\n", b"1\n0\n", b"0\n2\n1 1\n", b"0\n1\n1\n", b"0\nx\n", b"\xff\n1\n"])
def test_another_file_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_leader_epochs(data)
