"""Eligible leader replicas are disabled and enabled again while brokers, networks and ZooKeeper sessions fail.

Without power losses: with level 0 a replica that was the last in sync leads again, whatever it has lost (KIP-966).
"""

import asyncio

import pytest

from odradek.metadata.features import ELIGIBLE_LEADER_REPLICAS
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from odradek.protocol.sentinels import NO_LEADER
from tests.cluster.story import QUIET_S, TRANSACTION_TIMEOUTS_MS, Fault, Story
from tests.cluster.test_power_loss import check
from tests.cluster.test_whole_cluster import VARIABLE
from tests.seeds import seed_parameters
from tests.transactions.workload import make_clients
from tests.wire import encode_request

VERSION = 2
WRITING_S = 5.0
UPGRADE, SAFE_DOWNGRADE = 1, 2


class LevelStory(Story):
    async def _start_cluster(self) -> None:
        await super()._start_cluster()
        await self._members[0].answer(self._update(0))
        await self._until(self._is_level_0, "the level does not change")

    def _is_level_0(self) -> bool:
        newest = self._newest_image()
        return newest is not None and newest.feature_level(ELIGIBLE_LEADER_REPLICAS) == 0

    def _faults(self) -> list[Fault]:
        others = [(weight, fault) for weight, fault in super()._faults() if fault != self._lose_power]
        return [*others, (3, self._change_level)]

    def _change_level(self) -> None:
        member = self._any_ready()
        if member is not None:
            self._requests.add(task := asyncio.ensure_future(member.answer(self._update(self._chance.choice([0, 1])))))
            task.add_done_callback(self._requests.discard)

    def _update(self, level: int) -> bytes:
        self._note(f"the level of eligible leaders is to be {level}")
        update = FeatureUpdateKey(
            feature=ELIGIBLE_LEADER_REPLICAS,
            max_version_level=level,
            upgrade_type=UPGRADE if level else SAFE_DOWNGRADE,
        )
        return encode_request(UpdateFeaturesRequest(feature_updates=[update]), VERSION)[4:]


class OneByOneStory(LevelStory):
    """The brokers stop one by one while clients write; the first that stopped, which lacks records, starts first."""

    async def _tell(self) -> None:
        await self._start_cluster()
        clients = make_clients(self._clients, self._history, self._chance, self._now_ms, TRANSACTION_TIMEOUTS_MS)
        running = [asyncio.ensure_future(client.run()) for client in clients]
        for member in self._members:
            await asyncio.sleep(WRITING_S)  # a poll's pause
            await member.stop()
            self._invariants.forget(member.node_id)
        first, *others = self._members
        first.start()
        await asyncio.sleep(WRITING_S)  # a poll's pause
        kept = [(each.leader, each.in_sync_replicas) for each in first.image.topics["a"].partitions]
        assert kept == [(NO_LEADER, (self._members[-1].node_id,))] * len(kept)
        for member in others:
            member.start()
        for client in clients:
            client.is_stopping = True
        await asyncio.wait_for(asyncio.gather(*running), QUIET_S)
        await self._come_to_rest()


@pytest.mark.timeout(600)
def test_the_last_replica_in_sync_is_waited_for_and_leads_again() -> None:
    check(OneByOneStory(0))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", seed_parameters(VARIABLE, range(2), quick=1))
def test_nothing_is_lost_when_the_level_of_eligible_leaders_changes(seed: int) -> None:
    check(LevelStory(seed))
