"""Gaps between acknowledgements, and what is compared at the end."""

from __future__ import annotations

from odradek.cli.demo.load import CELLS, WARM_UP_S, Acknowledgements, PartitionAcks, ReadBack, compare


def test_a_gap_is_the_pause_between_two_acknowledgements() -> None:
    acks = PartitionAcks(3, 100.0)
    assert acks.take(0, 101.0) is None
    assert acks.take(1, 101.0 + WARM_UP_S) is None or acks.longest_s > 0
    gap = acks.take(2, 102.0 + WARM_UP_S + 0.4)
    assert gap is not None
    assert (gap.partition, gap.milliseconds) == (3, 1400)
    assert acks.take(3, 102.0 + WARM_UP_S + 0.41) is None
    assert round(acks.longest_s, 3) == 1.4
    assert round(104.41 - acks.last_s, 3) == 1.0


def test_the_warm_up_counts_as_no_gap() -> None:
    acks = PartitionAcks(0, 0.0)
    acks.take(0, 5.0)
    assert acks.take(1, 5.9) is None
    assert acks.longest_s == 0


def test_the_strip_has_a_cell_for_each_tenth_of_a_second() -> None:
    acks = PartitionAcks(0, 0.0)
    for number, now_s in enumerate((10.05, 10.06, 10.25)):
        acks.take(number, now_s)
    strip = acks.strip(10.45)
    assert len(strip) == CELLS
    assert strip[-5:] == [None, 2, 0, 1, 0]
    for number in range(200):
        acks.take(number, 11.05 + number * 0.1)
    assert None not in acks.strip(30.97)
    assert 0 not in acks.strip(30.97)


def test_totals_are_over_all_partitions() -> None:
    acks = Acknowledgements(2, 0.0)
    acks.partitions[0].take(0, 1.0)
    acks.partitions[1].take(0, 1.0)
    acks.partitions[1].take(1, 3.5)
    assert (acks.total, acks.longest_s) == (3, 2.5)


def test_lost_repeated_and_reordered_records_are_counted() -> None:
    assert compare([[0, 1, 2], [0]], [[0, 1, 2, 3], [0]]) == ReadBack(5, 0, 0, 0)
    assert compare([[0, 1, 2]], [[0, 2]]) == ReadBack(2, 1, 0, 0)
    assert compare([[0, 1]], [[0, 1, 1]]) == ReadBack(3, 0, 1, 0)
    assert compare([[0, 1]], [[1, 0]]) == ReadBack(2, 0, 0, 1)
