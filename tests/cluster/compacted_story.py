"""One seed: a compacted topic with unclean elections in a cluster of three brokers, whose replicas are compacted, moved
between log directories and truncated while brokers die and the network is cut.

`python -m tests.cluster.compacted_story SEED …` prints what went wrong with each, and what happened.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.records import Record, build_batch
from odradek.replica.compaction import Compaction
from tests.cluster.key_values import KeyValues
from tests.cluster.sessions import SESSION_S
from tests.cluster.test_moved_replicas import MovingStory
from tests.cluster.watched_cluster import NODES, ZOOKEEPER
from tests.wire import encode_request

if TYPE_CHECKING:
    from tests.cluster.story import Fault

TOPIC = "compacted"
PARTITIONS = 2
KEYS = 8
QUIET_S = 6.0  # for so long, all but two keys are left alone: tombstones expire while nothing replaces them
LAGGING_S = 3.0  # longer than `replica.lag.time.max.ms`
LONGEST_PIECE_S = 1.0  # of the work of compaction
SETTINGS = {
    "cleanup.policy": "compact",
    "delete.retention.ms": "1000",
    "flush.messages": "5",
    "index.interval.bytes": "0",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.index.bytes": "64",
    "unclean.leader.election.enable": "true",
}


class CompactedStory(MovingStory):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, {"log.cleaner.enable": "true", "log.cleaner.backoff.ms": "300"})
        self._invariants = self.key_values = KeyValues(TOPIC)
        for member in self._members:
            member.longest_background_pause_s = LONGEST_PIECE_S
        self._written = 0

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
        await self._cause_faults()
        self._recover()
        await self._until(self._is_in_sync_everywhere, "the cluster does not recover")
        await asyncio.sleep(2 * QUIET_S)  # a poll's pause: tombstones expire
        writing.cancel()
        await self._until(self._is_in_sync, "the cluster does not come to rest")

    async def _write(self) -> None:
        """To the leaders, without waiting for answers."""
        while True:
            await asyncio.sleep(self._chance.random() * 0.1)  # a poll's pause
            newest, index = self._newest_image(), self._chance.randrange(PARTITIONS)
            leader = (
                -1 if newest is None or TOPIC not in newest.topics else newest.topics[TOPIC].partitions[index].leader
            )
            member = next((each for each in self._members if each.node_id == leader), None)
            if member is None:
                continue
            self._written += 1
            value = None if self._chance.random() < 0.3 else b"%d" % self._written
            is_quiet = self._is_recovering or self._loop.time() % (2 * QUIET_S) > QUIET_S
            record = Record(0, self._now_ms(), b"%d" % self._chance.randrange(2 if is_quiet else KEYS), value)
            data = PartitionProduceData(index=index, records=memoryview(build_batch([record])))
            topics = [TopicProduceData(name=TOPIC, partition_data=[data])]
            request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
            self._requests.add(task := asyncio.ensure_future(member.answer(encode_request(request, 9)[4:])))
            task.add_done_callback(self._requests.discard)

    # Faults

    def _faults(self) -> list[Fault]:
        return [*super()._faults(), (12, self._elect_uncleanly)]

    async def _change_min_in_sync(self) -> None:
        """Other topics than that of this story are not there."""

    async def _elect_uncleanly(self) -> None:
        """Let a replica fall behind, and be the only one that the controller reaches for a while."""
        member = self._any_ready()
        if member is None or not self._is_in_sync_everywhere():
            return
        others = [each for each in self._members if each is not member]
        for other in others:
            self._network.cut(other.name, member.name)
            self._network.cut(member.name, other.name)
        self._note(f"broker {member.node_id} falls behind")
        await asyncio.sleep(LAGGING_S)  # a poll's pause
        self._heal()
        names = [*(each.name for each in self._members), ZOOKEEPER]
        is_killed = self._chance.random() < 0.3
        for other in others:
            if is_killed and other.is_alive:
                self._end(other, "is killed")
            self._network.isolate(other.name, names)  # one that lives truncates its log while it is compacted
        await asyncio.sleep(SESSION_S + LAGGING_S)  # a poll's pause
        self._heal()
        for other in others:
            if not other.is_alive:
                other.start()


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
