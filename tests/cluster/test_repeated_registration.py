"""All brokers register repeatedly before a controller commits any of their registrations: nobody has lost records."""

import asyncio

import pytest

from odradek.metadata.image import MetadataImage
from tests.cluster.story import Story
from tests.cluster.watched_cluster import NODES


class RepeatedRegistration(Story):
    async def _tell(self) -> None:
        await self._start_cluster()
        await self._until(self._is_in_sync, "the replicas are not in sync")
        self.candidates = 3
        for member in self._members:
            member.coordination.metadata.subscribe(self._count_candidates)
        for _ in range(3):
            before = self._epochs()
            for member in self._members:
                assert member.session is not None
                member.session.expire()
            while any(epoch in before for epoch in self._epochs()):  # noqa: ASYNC110 - of simulated time
                await asyncio.sleep(0.001)  # a poll's pause
        await self._until(self._is_accepted, "the cluster does not recover")

    def _is_accepted(self) -> bool:
        newest = self._newest_image()
        assert newest is not None
        present = {each.node_id: each.broker_epoch for each in newest.brokers.values()}
        return present == dict(zip(NODES, self._epochs(), strict=True)) and self._is_in_sync()

    def _count_candidates(self, _: MetadataImage, after: MetadataImage) -> None:
        for topic in after.topics.values():
            for partition in topic.partitions:
                count = len({*partition.in_sync_replicas, *partition.eligible_leader_replicas})
                self.candidates = min(self.candidates, count)

    def _epochs(self) -> list[int]:
        return [member.coordination.membership.broker_epoch for member in self._members]


@pytest.mark.timeout(600)
def test_nobody_leaves_the_sets_of_replicas_that_may_lead() -> None:
    story = RepeatedRegistration(0)
    result = story.run()
    assert not result.anomalies, "\n".join([*result.anomalies[:20], *result.events])
    assert story.candidates == 2, "one of three leaves while enough replicas are in sync"
