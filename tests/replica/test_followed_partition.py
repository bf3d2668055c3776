"""What a follower does with an answer of its leader."""

from collections.abc import Iterator
from typing import Any

import pytest

from odradek.log.log_config import LogConfig
from odradek.metadata.entities import PartitionImage
from odradek.protocol.batch import assign_offset
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import EpochEndOffset, PartitionData
from odradek.replica.followed_partition import FIRST_PAUSE_MS, FollowedPartition, Next, Step
from tests.handlers.requests import batch
from tests.replica.led_partitions import ELSEWHERE, WITH_A_FOLLOWER, LedPartition
from tests.simulation.simulated_host import Simulation

EPOCH = 5


class Follower:
    def __init__(self) -> None:
        self.simulation = Simulation(0)
        self.partition = LedPartition(self.simulation, LogConfig()).partition
        self.follow(EPOCH)

    def follow(self, epoch: int) -> None:
        image = PartitionImage(0, WITH_A_FOLLOWER, WITH_A_FOLLOWER, ELSEWHERE, epoch, epoch)
        assert self.partition.become_follower(image) is ErrorCode.NONE
        self.followed = FollowedPartition(self.partition)

    def take(self, data: PartitionData) -> Step:
        return self.followed.take(data, self.followed.position(1024))

    def append(self, base_offset: int, count: int, epoch: int = EPOCH, **offsets: int) -> Step:
        return self.take(answer(base_offset, count, epoch, **offsets))

    def run(self, work: Any) -> None:
        self.simulation.loop.run_until_complete(work)


def answer(
    base_offset: int, count: int, epoch: int = EPOCH, *, high_watermark: int = 0, start: int = 0
) -> PartitionData:
    records = batch(*[b"v"] * count)
    assign_offset(memoryview(records), 0, base_offset, epoch)
    return PartitionData(high_watermark=high_watermark, log_start_offset=start, records=memoryview(records))


@pytest.fixture
def follower() -> Iterator[Follower]:
    follower = Follower()
    yield follower
    follower.simulation.close()


def test_records_are_appended_and_offsets_followed(follower: Follower) -> None:
    assert follower.append(0, 3, high_watermark=2).next is Next.FETCH
    log = follower.partition.log
    assert (log.log_end_offset, follower.partition.high_watermark) == (3, 2)
    assert follower.append(3, 2, high_watermark=9, start=1).next is Next.FETCH
    assert (log.log_start_offset, log.log_end_offset, follower.partition.high_watermark) == (1, 5, 5)
    position = follower.followed.position(7)
    assert (position.fetch_offset, position.last_fetched_epoch, position.log_start_offset) == (5, EPOCH, 1)


def test_an_answer_to_a_request_of_an_earlier_epoch_is_ignored(follower: Follower) -> None:
    sent = follower.followed.position(1024)
    follower.follow(EPOCH + 1)
    assert follower.followed.take(answer(0, 3), sent).next is Next.FETCH
    assert follower.partition.log.log_end_offset == 0


def test_batches_of_later_epochs_than_the_leaders_are_refused(follower: Follower) -> None:
    assert follower.append(0, 3, EPOCH + 1).next is Next.PAUSE
    assert follower.partition.log.log_end_offset == 0


def test_a_divergence_is_cut_off(follower: Follower) -> None:
    follower.append(0, 3, 2)
    follower.append(3, 3, 4)
    data = PartitionData(diverging_epoch=EpochEndOffset(epoch=2, end_offset=8), records=b"")
    assert follower.take(data)[:2] == (Next.TRUNCATE, 3)
    data = PartitionData(diverging_epoch=EpochEndOffset(epoch=4, end_offset=5), records=b"")
    assert follower.take(data)[:2] == (Next.TRUNCATE, 5)


def test_a_log_that_starts_within_a_batch_of_the_leader_gets_the_whole_batch(follower: Follower) -> None:
    follower.run(follower.partition.follower_log.restart_at(12))
    step = follower.append(10, 5, high_watermark=15, start=12)
    assert step[:2] == (Next.RESTART, 10)
    assert step.answer is not None
    follower.run(follower.partition.follower_log.restart_at(step.offset))
    follower.followed.append_after_restart(step.answer)
    log = follower.partition.log
    assert (log.log_start_offset, log.log_end_offset, follower.partition.high_watermark) == (12, 15, 15)


def test_a_log_that_ends_in_a_gap_within_a_batch_of_the_leader_gets_the_whole_batch(follower: Follower) -> None:
    log, follower_log = follower.partition.log, follower.partition.follower_log
    follower.run(follower_log.restart_at(8))
    follower.append(12, 2, 3)
    follower.run(follower_log.truncate_to(11))
    assert (log.log_start_offset, log.log_end_offset) == (8, 11)
    assert follower.append(10, 5)[:2] == (Next.TRUNCATE, 10)
    follower.run(follower_log.truncate_to(10))
    assert follower.append(10, 5).next is Next.FETCH
    assert (log.log_start_offset, log.log_end_offset) == (8, 15)


def test_an_offset_that_the_leader_does_not_have(follower: Follower) -> None:
    assert follower.take(PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)).next is Next.FIND_RANGE
    assert follower.take(PartitionData(high_watermark=9, log_start_offset=9, records=b"")).next is Next.FIND_RANGE


def test_pauses_grow_until_an_answer_is_good(follower: Follower) -> None:
    followed = follower.followed
    ends = []
    for _ in range(3):
        assert follower.take(PartitionData(error_code=ErrorCode.UNKNOWN_LEADER_EPOCH)).next is Next.PAUSE
        followed.pause(0.0, 60.0)
        ends.append(followed.not_before_ms)
    assert ends == [FIRST_PAUSE_MS, 2 * FIRST_PAUSE_MS, 60.0]
    follower.append(0, 1)
    followed.pause(0.0, 60.0)
    assert followed.not_before_ms == FIRST_PAUSE_MS
