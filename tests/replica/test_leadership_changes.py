"""A broker leads a partition whose log is truncated when the truncation has ended, whatever else happens until then."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import cast

import pytest

from odradek.metadata.entities import PartitionImage
from odradek.protocol.errors import ErrorCode
from odradek.replica import leadership_changes
from odradek.replica.leadership import LogState
from odradek.replica.leadership_changes import LeadershipChanges
from odradek.replica.partition import Partition

OWN, OTHER = 1, 2


class TruncatedLog:
    def __init__(self) -> None:
        self._ended = asyncio.Event()
        self._ended.set()

    @property
    def is_truncating(self) -> bool:
        return not self._ended.is_set()

    async def settle(self) -> None:
        await self._ended.wait()

    def begin(self) -> None:
        self._ended.clear()

    def end(self) -> None:
        self._ended.set()


class TruncatedPartition:
    """As much of a partition as changes of leadership use; `become_leader` asserts what that of a partition does."""

    topic, index, directory = "topic", 0, SimpleNamespace(path="/d")
    log_state = LogState.ONLINE
    followers = None

    def __init__(self) -> None:
        self.follower_log = TruncatedLog()
        self.image: PartitionImage | None = None
        self.is_leader = False

    @property
    def leader_epoch(self) -> int:
        return -1 if self.image is None else self.image.leader_epoch

    def become_leader(self, image: PartitionImage) -> ErrorCode:
        assert not self.follower_log.is_truncating
        return self._take(image, is_leader=True)

    def become_follower(self, image: PartitionImage) -> ErrorCode:
        return self._take(image, is_leader=False)

    resign = become_follower

    def _take(self, image: PartitionImage, *, is_leader: bool) -> ErrorCode:
        self.image, self.is_leader = image, is_leader
        return ErrorCode.NONE


def image_of(leader: int, leader_epoch: int) -> PartitionImage:
    return PartitionImage(0, (OWN, OTHER), (OWN, OTHER), leader, leader_epoch, leader_epoch)


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_late_election_waits_for_a_second_truncation(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(leadership_changes, "TRUNCATION_LIMIT_S", 0.0)

    async def run() -> None:
        table = asyncio.Lock()
        after_late: list[bool] = []

        async def run_in_order(job: Callable[[], Awaitable[None]]) -> None:
            async with table:
                await job()

        elected = LeadershipChanges(OWN, run_in_order, lambda: after_late.append(True), may_lead=True)
        standin = TruncatedPartition()
        partition = cast("Partition", standin)
        standin.follower_log.begin()
        await elected.apply_all([(partition, image_of(OWN, 1))])
        assert elected.is_late(partition)
        async with table:  # commits are applied while the late election waits for its turn
            standin.follower_log.end()
            await turns()
            await elected.apply_all([(partition, image_of(OTHER, 2))])
            standin.follower_log.begin()
            await elected.apply_all([(partition, image_of(OWN, 3))])
        await turns()
        assert elected.is_late(partition)
        assert not standin.is_leader

        standin.follower_log.end()
        await turns()
        assert (standin.is_leader, standin.leader_epoch) == (True, 3)
        assert not elected.has_late
        assert (elected.count, after_late) == (1, [True])

    asyncio.run(run())
    (reported,) = caplog.messages
    assert "a truncation takes long" in reported
    caplog.clear()
