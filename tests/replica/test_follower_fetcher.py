"""A follower's fetches from one leader: how changes of its partitions end the wait of a fetch, and how its partitions
are kept apart from each other and from earlier leader epochs."""

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.replica.fetch_request_session import FetchPosition, PartitionKey
from odradek.replica.followed_partition import FollowedPartition, Next, Step
from odradek.replica.follower_fetcher import FollowerFetcher
from tests.replica.test_followed_partition import EPOCH, Follower, answer, follower

__all__ = ["follower"]

CONFIG = SimpleNamespace(replica_socket_timeout_ms=1000, replica_fetch_backoff_ms=100, replica_fetch_max_bytes=1 << 20)
PARTITIONS = 50
NO_THROTTLE = SimpleNamespace(covers=lambda *_partition: False)


class Leader:
    """A client of a leader that lets fetches wait."""

    is_connected = True

    def __init__(self) -> None:
        self.other_requests = 0

    async def call(self, *_request: object, **_options: object) -> None:
        self.other_requests += 1


def test_many_changes_end_the_wait_of_a_fetch_with_one_request() -> None:
    async def story() -> None:
        leader: Any = Leader()
        fetches: list[asyncio.Future[None]] = []
        clock: Any = None
        config: Any = lambda: CONFIG  # noqa: E731 - a name for a type that is not needed
        fetcher: Any = FollowerFetcher(leader, 1, lambda: 5, config, clock, clock)

        async def fetch(_changes: object) -> None:
            fetches.append(asyncio.get_running_loop().create_future())
            await fetches[-1]

        fetcher._fetch = fetch
        fetcher._changes = lambda: {"partition": "position"}
        for number in range(1, 4):
            await asyncio.sleep(0.01)  # a poll's pause: the fetch begins
            assert len(fetches) == number
            for _ in range(PARTITIONS):
                fetcher._wake()
            await asyncio.sleep(0.01)  # a poll's pause: requests are sent
            assert leader.other_requests == number
            fetches[-1].set_result(None)
        fetcher.stop()
        await asyncio.sleep(0)

    asyncio.run(story())


class RecordingFetcher(FollowerFetcher):
    """Records the positions of its fetches, which no leader answers."""

    def __init__(self, follower: Follower) -> None:
        self.sent: list[int] = []
        self.has_sent = asyncio.Event()
        leader: Any = Leader()
        config: Any = lambda: CONFIG  # noqa: E731 - a name for a type that is not needed
        throttle: Any = NO_THROTTLE
        super().__init__(leader, 1, lambda: 5, config, follower.simulation.host.clock, throttle)

    async def _fetch(self, changes: Any) -> None:
        self.sent += [position.fetch_offset for position in changes.values() if position is not None]
        self.has_sent.set()
        self._has_changed.clear()
        await self._has_changed.wait()


def test_truncation_that_was_decided_in_an_earlier_leader_epoch_is_waited_for(follower: Follower) -> None:
    """Metadata of the next epoch is applied in the turn of the event loop in which the truncation was decided."""
    follower.append(0, 3, 2)
    follower.append(3, 3, 4)

    async def story() -> list[int]:
        partition = follower.partition
        earlier, later = RecordingFetcher(follower), RecordingFetcher(follower)
        earlier.add(partition)
        followed = next(iter(earlier._partitions.values()))
        earlier._carry_out(followed, Step(Next.TRUNCATE, 3))
        follower.follow(EPOCH + 1)
        earlier.remove(followed.key)
        later.add(partition)
        await later.has_sent.wait()
        earlier.stop()
        later.stop()
        await asyncio.sleep(0)
        assert partition.log.log_end_offset == 3
        return later.sent

    assert follower.simulation.loop.run_until_complete(story()) == [3]


class LeaderWithRange:
    """Answers ListOffsets with the start and the end of its log."""

    def __init__(self, start_offset: int, end_offset: int, error: ErrorCode = ErrorCode.NONE) -> None:
        self._offsets, self._error = {-2: start_offset, -1: end_offset}, error

    async def call(self, request: ListOffsetsRequest, *_response: object, **_options: object) -> ListOffsetsResponse:
        offset = self._offsets[request.topics[0].partitions[0].timestamp]
        found = ListOffsetsPartitionResponse(partition_index=0, error_code=self._error, offset=offset)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(partitions=[found])])


@pytest.mark.parametrize(
    ("leader", "start_and_end", "is_paused"),
    [
        (LeaderWithRange(0, 3), (0, 3), False),
        (LeaderWithRange(10, 20), (10, 10), False),
        (LeaderWithRange(0, 9), (0, 6), True),
        (LeaderWithRange(10, 20, ErrorCode.NOT_LEADER_OR_FOLLOWER), (0, 6), True),
    ],
    ids=["leader ends before", "leader begins behind", "leader has the offset again", "leader has changed"],
)
def test_log_that_ends_outside_the_log_of_its_leader_is_cut_or_begins_again(
    follower: Follower, leader: Any, start_and_end: tuple[int, int], is_paused: bool
) -> None:
    follower.append(0, 3, 2)
    follower.append(3, 3, 4)

    async def story() -> bool:
        fetcher = RecordingFetcher(follower)
        fetcher.client = leader
        fetcher.add(follower.partition)
        followed = next(iter(fetcher._partitions.values()))
        fetcher._carry_out(followed, Step(Next.FIND_RANGE))
        while followed.is_busy:  # noqa: ASYNC110 - the flag is of the fetcher
            await asyncio.sleep(0)
        fetcher.stop()
        await asyncio.sleep(0)
        return bool(fetcher._paused)

    assert follower.simulation.loop.run_until_complete(story()) is is_paused
    log = follower.partition.log
    assert (log.log_start_offset, log.log_end_offset) == start_and_end


def response_with(*partitions: tuple[UUID, PartitionData]) -> FetchResponse:
    topics = [FetchableTopicResponse(topic_id=topic_id, partitions=[data]) for topic_id, data in partitions]
    return FetchResponse(session_id=1, responses=topics)


def test_defect_in_one_partition_does_not_keep_others_from_following(
    follower: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> RecordingFetcher:
        fetcher = RecordingFetcher(follower)
        fetcher.add(follower.partition)
        defective = FollowedPartition(follower.partition)
        defective.key = PartitionKey(UUID(int=7), 0)
        fetcher._partitions[defective.key] = defective
        for key in fetcher._partitions:
            fetcher._session.sent[key] = follower.followed.position(1024)
        taken = follower.followed.take

        def take(data: PartitionData, sent: FetchPosition) -> Step:
            raise AssertionError("a defect")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                FollowedPartition, "take", lambda self, *answer: (take if self is defective else taken)(*answer)
            )
            fetcher._take(
                response_with((defective.key.topic_id, answer(0, 1)), (follower.partition.topic_id, answer(0, 3)))
            )
        fetcher.stop()
        await asyncio.sleep(0)
        return fetcher

    fetcher = follower.simulation.loop.run_until_complete(story())
    assert follower.partition.log.log_end_offset == 3
    assert [key.topic_id for key in fetcher._paused] == [UUID(int=7)]
    assert "a partition could not follow its leader" in caplog.text
    caplog.clear()


def test_fetcher_goes_on_after_a_defect_in_the_positions(follower: Follower, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> list[int]:
        fetcher = RecordingFetcher(follower)
        fetcher.client.address = "leader"  # type: ignore[assignment]  # a stand-in for tests
        find_changes, failures = fetcher._changes, [AssertionError("a defect")]

        def changes() -> Any:
            if failures:
                raise failures.pop()
            return find_changes()

        fetcher._changes = changes  # type: ignore[method-assign]  # a stand-in for tests
        fetcher.add(follower.partition)
        await fetcher.has_sent.wait()
        fetcher.stop()
        await asyncio.sleep(0)
        return fetcher.sent

    assert follower.simulation.loop.run_until_complete(story()) == [0]
    assert "a fetch from a leader failed" in caplog.text
    caplog.clear()
