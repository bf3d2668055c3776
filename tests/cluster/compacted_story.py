"""One seed: a compacted topic with unclean elections in a cluster of three brokers, whose replicas are compacted, moved
between log directories and truncated while brokers die and the network is cut.

`python -m tests.cluster.compacted_story SEED …` prints what went wrong with each, and what happened.
"""

import asyncio
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.records import Record, build_batch
from odradek.replica.compaction import Compaction
from tests.cluster.key_values import KeyValues
from tests.cluster.member import Member
from tests.cluster.story import Fault
from tests.cluster.test_moved_replicas import MovingStory
from tests.cluster.watched_cluster import NODES, ZOOKEEPER
from tests.wire import encode_request

TOPIC = "compacted"
PARTITIONS = 2
KEYS = 12
MOST_RECORDS = 4  # of a batch
WARM_UP_S = 2.0  # for so long, nothing happens but writes
QUIET_S = 4.0  # for so long, all but two keys are left alone: tombstones expire while nothing replaces them
TRUNCATING_S = 1.0  # so soon after a fault, all follow the leader again
LONGEST_WAIT_S, POLL_S = 8.0, 0.2  # for what a fault needs; it goes on without
LONGEST_PIECE_S, LONGEST_SLOW_PIECE_S = 0.1, 3.0  # of the work of compaction
SETTINGS = {
    "cleanup.policy": "compact",
    "delete.retention.ms": "1000",
    "flush.messages": "5",
    "index.interval.bytes": "0",
    "min.cleanable.dirty.ratio": "0.3",
    "min.insync.replicas": "1",
    "segment.index.bytes": "32",
    "unclean.leader.election.enable": "true",
}


class CompactedStory(MovingStory):
    faulty_s = 15.0  # after an unclean election, which takes as long

    def __init__(self, seed: int) -> None:
        super().__init__(seed, {"log.cleaner.enable": "true", "log.cleaner.backoff.ms": "300"})
        self._invariants = self.key_values = KeyValues(TOPIC)
        for member in self._members:
            member.longest_background_pause_s = LONGEST_PIECE_S
        self._written = 0
        self._quiet_from: dict[int, int] = {}  # for each partition,

    async def _tell(self) -> None:
        for member in self._members:
            member.start()
        await self._until(self._is_whole, "the cluster does not start")
        configs = [CreatableTopicConfig(name=name, value=value) for name, value in SETTINGS.items()]
        topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=len(NODES), configs=configs)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        await self._members[0].answer(encode_request(request, 7)[4:])
        await self._until(self._is_in_sync, "the topic is not created")
        writing = asyncio.ensure_future(self._write())
        await asyncio.sleep(WARM_UP_S)  # a poll's pause
        await self._elect_uncleanly()
        await self._cause_faults()
        self._recover()
        await self._until(self._is_in_sync_everywhere, "the cluster does not recover")
        await asyncio.sleep(QUIET_S)  # a poll's pause: tombstones expire
        writing.cancel()
        await self._until(self._is_in_sync, "the cluster does not come to rest")
        self.key_values.compare_with_readers()

    async def _write(self) -> None:
        """To the leaders, without waiting for answers."""
        while True:
            await asyncio.sleep(self._chance.random() * 0.3)  # a poll's pause
            newest, index = self._newest_image(), self._chance.randrange(PARTITIONS)
            leader = (
                -1 if newest is None or TOPIC not in newest.topics else newest.topics[TOPIC].partitions[index].leader
            )
            member = next((each for each in self._members if each.node_id == leader), None)
            if member is None:
                continue
            end_offset = _end_offsets(member).get(index, 0)
            is_quiet = self._is_recovering or end_offset >= self._quiet_from.get(index, math.inf)
            batch = build_batch(self._make_records(2 if is_quiet else KEYS))
            data = PartitionProduceData(index=index, records=memoryview(batch))
            topics = [TopicProduceData(name=TOPIC, partition_data=[data])]
            request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
            self._requests.add(task := asyncio.ensure_future(member.answer(encode_request(request, 9)[4:])))
            task.add_done_callback(self._requests.discard)

    def _make_records(self, keys: int) -> list[Record]:
        records = []
        for place in range(self._chance.randint(1, MOST_RECORDS)):
            self._written += 1
            key = b"%d" % self._chance.randrange(keys)
            value = None if self._chance.random() < 0.3 else b"%d" % self._written
            records.append(Record(place, self._now_ms(), key, value))
        return records

    # Faults

    def _faults(self) -> list[Fault]:
        return [*super()._faults(), (6, self._elect_uncleanly)]

    async def _change_min_in_sync(self) -> None:
        """Other topics than that of this story are not there."""

    async def _elect_uncleanly(self) -> None:
        """Let a replica fall behind, and be the only one that the controller reaches for a while. The others truncate
        what they have compacted or are compacting, and get other records in its place."""
        member = self._any_ready()
        if member is None or not self._is_in_sync_everywhere():
            return
        others = [each for each in self._members if each is not member]
        for other in others:
            self._network.cut(other.name, member.name)
            self._network.cut(member.name, other.name)
        self._note(f"broker {member.node_id} falls behind")
        ends = _end_offsets(member)
        self._quiet_from = dict.fromkeys(ends, 0)  # what was written before stays the newest of most keys
        await self._soon(lambda: all(_is_past(_clean_offsets(other), ends) for other in others))
        if self._chance.random() < 0.5:  # then all keys get records that are being compacted
            self._quiet_from = {}
            await asyncio.sleep(self._chance.random() * 2)  # a poll's pause
            for other in others:
                other.longest_background_pause_s = LONGEST_SLOW_PIECE_S
        await self._lead_alone(member, others)
        for other in others:
            if not other.is_alive:
                other.start()
        await asyncio.sleep(TRUNCATING_S)  # a poll's pause
        for other in others:
            other.longest_background_pause_s = LONGEST_PIECE_S
        await asyncio.sleep(QUIET_S)  # a poll's pause
        self._quiet_from = {}

    async def _lead_alone(self, member: Member, others: Sequence[Member]) -> None:
        """Until it has more records than the others have compacted. In the place of these, it gets all keys."""
        self._heal()
        names = [*(each.name for each in self._members), ZOOKEEPER]
        clean = [_clean_offsets(other) for other in others]
        is_killed = self._chance.random() < 0.3
        for other in others:
            if is_killed and other.is_alive:
                self._end(other, "is killed")
            self._network.isolate(other.name, names)
        self._quiet_from = {index: min(each.get(index, 0) for each in clean) for index in range(PARTITIONS)}

        def has_passed() -> bool:
            return all(_is_past(_end_offsets(member), each) for each in (*clean, *map(_clean_offsets, others)))

        await self._soon(has_passed)
        self._heal()

    async def _soon(self, condition: Callable[[], bool]) -> None:
        for _ in range(round(LONGEST_WAIT_S / POLL_S)):
            if condition():
                return
            await asyncio.sleep(POLL_S)  # a poll's pause


def _end_offsets(member: Member) -> dict[int, int]:
    partitions = member.table if member.is_ready else ()
    return {each.index: each.log.log_end_offset for each in partitions if each.topic == TOPIC}


def _clean_offsets(member: Member) -> dict[int, int]:
    offsets: dict[int, int] = {}
    for partition in member.table if member.is_ready else ():
        if partition.topic == TOPIC:
            read = partition.directory.cleaner_offsets.read()
            offsets[partition.index] = read.get((TOPIC, partition.index), 0)
    return offsets


def _is_past(offsets: dict[int, int], others: dict[int, int]) -> bool:
    return all(offsets.get(index, -1) > other for index, other in others.items())


def tell(seed: int) -> CompactedStory:
    """The story after its end; AssertionError with what happened if something is wrong."""
    story = CompactedStory(seed)
    result = story.run()
    assert not result.anomalies, "\n".join([f"seed {seed}", *result.anomalies[:5], *result.events])
    return story


# Planted bugs


def _go_on(self: Compaction, *_: object) -> None:
    """A truncation does not end the compaction of its log."""


async def _keep_clean_offset(self: Compaction, *_: object) -> None:
    """What is fetched in place of truncated records counts as compacted."""


BUGS: dict[str, list[tuple[Any, str, Any]]] = {
    "a compaction goes on after a truncation": [(Compaction, "_abandon_truncated", _go_on)],
    "the clean offset outlives a truncation": [(Compaction, "_lower_clean_offset", _keep_clean_offset)],
}


if __name__ == "__main__":
    for number in map(int, sys.argv[1:]):
        tell(number)
        print(number, flush=True)
