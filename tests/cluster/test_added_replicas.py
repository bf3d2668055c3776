"""Replicas that are added to a topic without traffic join its in-sync set as soon as they have caught up."""

import pytest

from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.schema import Request
from tests.cluster.story import Story
from tests.cluster.watched_cluster import NODES
from tests.wire import encode_request

LONGEST_S = 1.0
PARTITIONS = 5


class AddedReplicas(Story):
    async def _tell(self) -> None:
        await self._start_cluster()
        topic = CreatableTopic(name="grown", num_partitions=PARTITIONS, replication_factor=1)
        await self._send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        await self._until(self._is_known, "the topic is not created")
        grown = [ReassignablePartition(partition_index=index, replicas=[*NODES]) for index in range(PARTITIONS)]
        began_s = self._loop.time()
        reassigned = ReassignableTopic(name="grown", partitions=grown)
        await self._send(AlterPartitionReassignmentsRequest(topics=[reassigned], timeout_ms=10_000), 0)
        await self._until(self._is_grown, "the replicas do not join")
        self.duration_s = self._loop.time() - began_s

    async def _send(self, request: Request, version: int) -> None:
        assert await self._members[0].answer(encode_request(request, version)[4:]) is not None

    def _is_known(self) -> bool:
        return all("grown" in member.image.topics for member in self._members)

    def _is_grown(self) -> bool:
        newest = self._newest_image()
        assert newest is not None
        return all(set(each.in_sync_replicas) == set(NODES) for each in newest.topics["grown"].partitions)


@pytest.mark.timeout(600)
def test_all_added_replicas_of_an_empty_topic_join_within_a_second() -> None:
    for seed in range(2):
        story = AddedReplicas(seed, {"replica.lag.time.max.ms": "30000"})
        result = story.run()
        assert not result.anomalies, "\n".join([*result.anomalies[:20], *result.events])
        assert story.duration_s < LONGEST_S
