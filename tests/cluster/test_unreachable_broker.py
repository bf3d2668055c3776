"""A broker that reaches the controller and advertises an address at which nobody reaches it."""

import asyncio

import pytest

from odradek.metadata.image import MetadataImage
from tests.cluster.story import Story

WRONG_HOST = "elsewhere"


class WrongAddress(Story):
    fencings = 0

    async def _tell(self) -> None:
        lost = self._members[2]
        lost.advertised_host = WRONG_HOST
        for member in self._members:
            self._network.cut(member.name, WRONG_HOST)
        await self._start_cluster()
        self._members[0].coordination.metadata.subscribe(self._count_fencings)
        await asyncio.sleep(120)  # a poll's pause
        newest = self._newest_image()
        assert newest is not None
        assert newest.brokers[lost.node_id].is_fenced
        self._heal()
        await self._until(self._is_in_sync, "the cluster does not recover")

    def _count_fencings(self, before: MetadataImage, after: MetadataImage) -> None:
        for node_id, broker in after.brokers.items():
            self.fencings += broker.is_fenced and not before.brokers[node_id].is_fenced


@pytest.mark.timeout(600)
def test_a_broker_stays_fenced_while_the_controller_does_not_reach_it() -> None:
    story = WrongAddress(1)
    result = story.run()
    assert not result.anomalies, "\n".join([*result.anomalies[:20], *result.events])
    assert story.fencings == 1
