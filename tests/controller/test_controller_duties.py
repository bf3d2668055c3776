"""The timers of a controller: preferred leaders, unclean elections, replacements of replicas; in virtual time."""

import logging
from collections.abc import Awaitable, Iterator
from dataclasses import replace

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.controller.controller import Controller
from odradek.controller.controller_duties import ControllerDuties
from odradek.controller.decisions.brokers import LiveBroker
from odradek.controller.decisions.in_sync_sets import InSyncProposal
from odradek.controller.decisions.topics import Assignment, NewTopic
from odradek.controller.requests import AlterPartitions, CreateTopics
from odradek.metadata.entities import PartitionImage
from tests.controller.clusters import broker
from tests.metadata.inline_host import CountingEntropy
from tests.metadata.key_value_store import KeyValueStore, Table
from tests.simulation.simulated_host import Simulation

THREE = {node_id: LiveBroker(broker(node_id), []) for node_id in (1, 2, 3)}


class DutyRig:
    def __init__(self, **properties: str) -> None:
        self.simulation = Simulation(0)
        named = {name.replace("_", "."): value for name, value in properties.items()}
        config = BrokerConfig.from_properties({"node.id": "1", **named})
        self.store = KeyValueStore(Table(), 100)
        self.controller = Controller(self.store, config, CountingEntropy())
        self.duties = ControllerDuties(self.simulation.host.clock, lambda: self.controller, lambda: config)
        self.simulation.loop.run_until_complete(self._start())

    async def _start(self) -> None:
        await self.controller.start_elected(await self.store.claim_controller(1))
        await self.controller.cluster.follow_live_brokers(THREE)
        await self.controller.ask(CreateTopics([NewTopic(name="t", assignments=[Assignment(0, (1, 2))])]))
        self.duties.start()

    def run(self, step: Awaitable[object]) -> None:
        self.simulation.loop.run_until_complete(step)

    def pass_time(self, seconds: float) -> None:
        passed = self.simulation.loop.create_future()
        self.simulation.loop.call_later(seconds, passed.set_result, None)
        self.simulation.loop.run_until_complete(passed)

    @property
    def partition(self) -> PartitionImage:
        return self.controller.image.topics["t"].partitions[0]

    def lose(self, *node_ids: int) -> None:
        live = {node_id: each for node_id, each in THREE.items() if node_id not in node_ids}
        self.run(self.controller.cluster.follow_live_brokers(live))

    def close(self) -> None:
        self.simulation.loop.run_until_complete(self.duties.stop())
        self.simulation.close()


@pytest.fixture
def rig(request: pytest.FixtureRequest) -> Iterator[DutyRig]:
    rig = DutyRig(**getattr(request, "param", {}))
    yield rig
    rig.close()


def return_to_in_sync(rig: DutyRig) -> None:
    """Broker 1 dies, broker 2 leads, broker 1 returns and catches up."""
    rig.lose(1)
    returned = LiveBroker(replace(broker(1), broker_epoch=9), [1])
    rig.run(rig.controller.cluster.follow_live_brokers({**THREE, 1: returned}))
    partition = rig.partition
    topic_id = rig.controller.image.topics["t"].topic_id
    proposal = InSyncProposal(topic_id, 0, partition.leader_epoch, partition.partition_epoch, ((2, 1), (1, 9)))
    rig.run(rig.controller.ask(AlterPartitions(2, 1, [proposal])))
    assert (rig.partition.leader, rig.partition.in_sync_replicas) == (2, (2, 1))


def test_preferred_leaders_are_given_back_at_the_interval(rig: DutyRig) -> None:
    return_to_in_sync(rig)
    rig.pass_time(295)
    assert rig.partition.leader == 2
    rig.pass_time(10)
    assert rig.partition.leader == 1


@pytest.mark.parametrize("rig", [{"auto_leader_rebalance_enable": "false"}], indirect=True)
def test_preferred_leaders_are_not_given_back_if_that_is_off(rig: DutyRig) -> None:
    return_to_in_sync(rig)
    rig.pass_time(1000)
    assert rig.partition.leader == 2


@pytest.mark.parametrize("rig", [{"absent_broker_replacement_ms": "60000"}], indirect=True)
def test_replicas_of_a_broker_that_stays_away_are_made_anew(rig: DutyRig) -> None:
    rig.pass_time(2)
    rig.lose(2)
    rig.pass_time(55)
    assert not rig.partition.adding_replicas
    rig.pass_time(10)
    moving = rig.controller.image.topics["t"].partitions[0]
    assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == ((1, 3, 2), (3,), (2,))


def test_nothing_is_replaced_by_default(rig: DutyRig) -> None:
    rig.lose(2)
    rig.pass_time(2000)
    assert rig.partition.replicas == (1, 2)


def test_another_controller_ends_the_duties(rig: DutyRig) -> None:
    return_to_in_sync(rig)
    rig.run(rig.store.claim_controller(2))
    rig.pass_time(400)
    assert rig.partition.leader == 2
    assert not rig.controller.is_active


def test_the_default_minimum_that_an_election_makes_a_setting_of_the_cluster_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    rig = DutyRig(min_insync_replicas="2")
    claimed = rig.simulation.loop.run_until_complete(rig.store.claim_controller(1))
    rig.run(rig.controller.start_elected(claimed))
    rig.close()
    assert caplog.text.count("the default of min.insync.replicas is a setting of the cluster") == 1
