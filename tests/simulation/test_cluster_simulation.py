"""Three simulated brokers and a ZooKeeper whose connections break and whose sessions expire: one controller per epoch,
one log of commits, and the same metadata everywhere in the end. A failing seed replays exactly."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import pytest

from odradek.controller.decisions.topics import NewTopic
from odradek.controller.requests import CreateTopics
from odradek.metadata.changes import ControllerElected, ProducerIdsAllocated, TopicCreated
from odradek.metadata.store import Commit, CommitOutcome, StoreError
from odradek.metadata.zookeeper_layout import CONTROLLER_EPOCH, HEAD, decode_head
from odradek.protocol.errors import ErrorCode
from tests.seeds import seed_parameters
from tests.simulation.simulated_clock import pass_time
from tests.simulation.simulated_cluster import SimulatedCluster, SimulatedMember

SEEDS = seed_parameters("ODRADEK_SESSION_SEEDS", range(1, 5), quick=1)
SOAK_SEEDS = range(5, 25)
STEPS = 60


class Faults:
    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self.created: set[str] = set()
        self.refusals: dict[ErrorCode, int] = {}

    async def step(self, number: int) -> None:
        chance = self._cluster.chance
        member = chance.choice(self._cluster.members)
        match chance.randrange(11):
            case 0 | 1 | 2 | 3 | 4:
                controllers = self._cluster.controllers
                asked = chance.choice(controllers) if controllers and chance.random() < 0.7 else member
                await self._create_topic(asked, f"t{number}")
            case 5:
                self._break_connection(member, expires=False)
            case 6:
                self._break_connection(member, expires=True)
            case 7 if member.session is not None:
                member.session.lose_answer = chance.randrange(4)
            case 8 if member.session is not None:
                member.session.lose_request = chance.randrange(4)
            case 9:
                await (member.start() if member.node is None else member.stop())
            case 10 if member.node is not None:
                await self._commit_as_deposed_controller(member)
        await pass_time(chance.choice([0.0, 0.005, 0.5]))

    async def _create_topic(self, member: SimulatedMember, name: str) -> None:
        if member.node is None:
            return
        with suppress(StoreError):  # the outcome is unknown
            (result,) = await member.coordination.channel.ask(
                CreateTopics([NewTopic(name=name, partition_count=2, replication_factor=1)])
            )
            self.refusals[result.error] = self.refusals.get(result.error, 0) + 1
            if result.error is ErrorCode.NONE:
                self.created.add(name)

    async def _commit_as_deposed_controller(self, member: SimulatedMember) -> None:
        """As a process does that hung while another controller was elected: it has the newest version by chance."""
        current_epoch = int(self._cluster.ensemble.nodes[CONTROLLER_EPOCH].data)
        newest_version = decode_head(self._cluster.ensemble.nodes[HEAD].data).version
        store = member.coordination.store
        old_epoch = self._cluster.chance.randrange(current_epoch)
        store.claims._node_versions = {old_epoch: old_epoch}  # as it remembers them: each claim sets the node once
        with suppress(StoreError):
            change = [ProducerIdsAllocated(1)]
            outcome = await store.commit(change, expected_version=newest_version, controller_epoch=old_epoch)
            assert outcome is not CommitOutcome.COMMITTED

    def _break_connection(self, member: SimulatedMember, *, expires: bool) -> None:
        session = member.session
        if session is None:
            return
        if expires:
            session.expire()
        else:
            session.disconnect()
        away_s = self._cluster.chance.choice([0.0, 0.05, 3.0])
        asyncio.get_running_loop().call_later(away_s, session.reconnect)


async def settle(cluster: SimulatedCluster) -> None:
    """Without faults, all brokers run and agree within a simulated minute."""
    for member in cluster.members:
        if member.session is not None:
            member.session.lose_answer = member.session.lose_request = None
            member.session.reconnect()
        if member.node is None:
            await member.start()
    await pass_time(60)


def check_log(commits: Sequence[Commit]) -> None:
    elected: dict[int, int] = {}
    epoch = 0
    for version, commit in enumerate(commits, 1):
        assert commit.version == version
        for change in commit.changes:
            if isinstance(change, ControllerElected):
                assert change.controller_epoch > epoch
                epoch = change.controller_epoch
                elected[epoch] = change.controller_id
        assert commit.controller_epoch == epoch, "a commit of a controller that was replaced"


@pytest.mark.parametrize("seed", [*SEEDS, *(pytest.param(seed, marks=pytest.mark.soak) for seed in SOAK_SEEDS)])
def test_brokers_agree_whatever_happens_to_their_sessions(seed: int) -> None:
    cluster = SimulatedCluster(seed)

    async def scenario() -> None:
        await asyncio.gather(*(member.start() for member in cluster.members))
        faults = Faults(cluster)
        for number in range(STEPS):
            await faults.step(number)
        await settle(cluster)
        newest = await cluster.open_store().load()
        (controller,) = cluster.controllers
        assert newest.controller_id == controller.node_id
        for member in cluster.members:
            assert member.coordination.metadata.image == newest
            present = newest.brokers[member.node_id]
            assert (present.is_fenced, present.broker_epoch) == (False, member.coordination.membership.broker_epoch)
        assert faults.created <= set(newest.topics)
        assert faults.created
        commits = await cluster.open_store().changes_since(0)
        assert commits is not None
        check_log(commits)
        made = [
            change.topic.name for commit in commits for change in commit.changes if isinstance(change, TopicCreated)
        ]
        assert len(made) == len(set(made)), "a topic was created twice"

    try:
        cluster.run(scenario())
    finally:
        cluster.close()
