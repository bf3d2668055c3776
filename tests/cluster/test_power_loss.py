"""A broker that is cut off loses power: what the others do before and after its ZooKeeper session expires."""

import asyncio

import pytest

from tests.cluster.sessions import SESSION_S
from tests.cluster.story import QUIET_S, TRANSACTION_TIMEOUTS_MS, Story
from tests.cluster.watched_cluster import ZOOKEEPER
from tests.replication.invariants import Violation
from tests.transactions.workload import make_clients

LONGEST_FENCING_S = 1.0
WRITING_S = 5.0


class _PowerLossStory(Story):
    async def _isolate_and_lose_power(self) -> None:
        """Of a broker that is not the controller."""
        await self._until(self._is_in_sync_everywhere, "the replicas are not in sync")
        self.lost = next(each for each in self._members if not each.is_controller)
        self._network.isolate(self.lost.name, [*(each.name for each in self._members), ZOOKEEPER])
        self.lost.lose_power()
        self._invariants.forget(self.lost.node_id)


class RestartStory(_PowerLossStory):
    async def _tell(self) -> None:
        await self._start_cluster()
        await self._isolate_and_lose_power()
        self.lost.start()
        await asyncio.sleep(SESSION_S + LONGEST_FENCING_S)  # a poll's pause
        newest = self._newest_image()
        assert newest is not None
        kept = [
            (name, index)
            for name, topic in newest.topics.items()
            for index, partition in enumerate(topic.partitions)
            if self.lost.node_id in (partition.leader, *partition.in_sync_replicas)
        ]
        if not newest.brokers[self.lost.node_id].is_fenced or kept:
            raise Violation(f"the broker counts as alive, and as in sync in {kept}")
        self._network.heal()
        await self._until(self._is_in_sync, "the cluster does not recover")


class StopStory(_PowerLossStory):
    """The others stop, the controller last. They leave the in-sync sets, and the broker without its records stays."""

    async def _tell(self) -> None:
        await self._start_cluster()
        clients = make_clients(self._clients, self._history, self._chance, self._now_ms, TRANSACTION_TIMEOUTS_MS)
        running = [asyncio.ensure_future(client.run()) for client in clients]
        await asyncio.sleep(WRITING_S)  # a poll's pause
        await self._isolate_and_lose_power()
        others = [each for each in self._members if each is not self.lost]
        for member in sorted(others, key=lambda each: each.is_controller):
            await member.stop()
            self._invariants.forget(member.node_id)
        self._network.heal()
        for member in self._members:
            member.start()
        for client in clients:
            client.is_stopping = True
        await asyncio.wait_for(asyncio.gather(*running), QUIET_S)
        await self._come_to_rest()


def check(story: Story) -> None:
    result = story.run()
    assert not result.anomalies, "\n".join([*result.anomalies[:20], *result.events])


@pytest.mark.timeout(600)
def test_the_session_of_a_process_expires_although_another_one_of_its_broker_has_started() -> None:
    """Otherwise in-sync sets could shrink to a replica that has lost its records at any later time."""
    check(RestartStory(1))


@pytest.mark.timeout(600)
def test_replicas_that_leave_the_in_sync_set_to_one_without_its_records_stay_eligible() -> None:
    """With `min.insync.replicas` 2 (KIP-966). With 1, this seed loses records, by rules that are Kafka's."""
    check(StopStory(0))
