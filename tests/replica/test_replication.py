"""The composition of a broker's replication: second looks at in-sync sets after refusals, and what follows metadata."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from odradek.configuration.listeners import Endpoint
from odradek.controller.decisions.in_sync_sets import InSyncProposal, InSyncResult
from odradek.host.clock import Clock
from odradek.metadata.entities import BrokerImage, PartitionImage, TopicImage
from odradek.metadata.snapshot import empty_image
from odradek.protocol.errors import ErrorCode
from odradek.replica.fetch_request_session import PartitionKey
from odradek.replica.in_sync_requests import InSyncRequests
from odradek.replica.replication import Replication
from tests.simulation.simulated_clock import pass_time
from tests.simulation.simulated_host import Simulation

PAUSE_MS = 500.0


class Proposer:
    """Records when it is asked to look at its in-sync set."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.looks_ms: list[float] = []

    def check_in_sync(self) -> None:
        self.looks_ms.append(self._clock.monotonic_ms())


def test_each_refused_proposal_gets_a_second_look_when_its_own_pause_has_ended() -> None:
    simulation = Simulation(1)
    clock = simulation.host.clock
    unused: Any = None
    replication = Replication(0, unused, unused, unused, clock)
    first, second = Proposer(clock), Proposer(clock)
    began_ms = clock.monotonic_ms()

    def refuse(proposer: Any) -> None:
        replication.check_in_sync_after(PAUSE_MS, proposer)

    refuse(first)
    clock.call_after(400.0, lambda: refuse(second))
    simulation.loop.run_until_complete(pass_time(2))
    replication.stop()
    simulation.close()
    assert [look - began_ms >= PAUSE_MS for look in first.looks_ms] == [True]
    assert [look - began_ms >= 400.0 + PAUSE_MS for look in second.looks_ms] == [True]


def test_partitions_that_are_gone_are_released_when_brokers_change_in_the_same_step() -> None:
    """A reader that is far behind follows several commits at once."""
    simulation = Simulation(1)
    unused: Any = None
    config: Any = SimpleNamespace(inter_broker_listener_name="PLAINTEXT")
    replication = Replication(0, unused, unused, lambda: config, simulation.host.clock)
    key = PartitionKey(UUID(int=1), 0)
    leader = BrokerImage(1, {"PLAINTEXT": Endpoint("one", 9092)}, None, 11)
    fetcher: Any = SimpleNamespace(keys={key}, client=SimpleNamespace(), is_stopped=False)
    fetcher.remove = fetcher.keys.discard
    fetcher.stop = lambda: setattr(fetcher, "is_stopped", True)
    replication._brokers = {1: leader}
    fetcher.client.address = replication._address(1)
    replication._fetchers[1] = fetcher
    table: Any = EmptyTable()
    replication._table = table
    topic = TopicImage("topic", key.topic_id, (PartitionImage(0, (0, 1), (0, 1), 1, 3, 1),), False)
    empty = empty_image("cluster")
    before = replace(empty, brokers={1: leader}, topics={"topic": topic})
    brokers = {1: leader, 2: replace(leader, node_id=2)}
    replication.follow(before, replace(empty, brokers=brokers, configs=before.configs))
    assert fetcher.is_stopped
    assert not replication._fetchers
    simulation.close()


class EmptyTable:
    def __iter__(self) -> Iterator[Any]:
        return iter(())


class AnsweringChannel:
    """Answers every proposal with an error that is final."""

    def __init__(self) -> None:
        self.requests: list[int] = []

    async def propose(self, proposals: Sequence[InSyncProposal]) -> list[InSyncResult]:
        self.requests.append(len(proposals))
        return [InSyncResult(ErrorCode.NONE)] * len(proposals)


class ProposerWithDefect:
    def __init__(self, defects: int) -> None:
        self.defects = defects
        self.is_resolved = False

    def proposal(self) -> InSyncProposal | None:
        return None if self.is_resolved else InSyncProposal(UUID(int=1), 0, 1, 1, ())

    def check_in_sync(self) -> None: ...

    def resolve(self, proposal: InSyncProposal, result: InSyncResult) -> bool:
        self.defects -= 1
        assert self.defects < 0, "a defect"
        self.is_resolved = True
        return True


def test_defect_in_one_answer_is_repeated_and_the_others_are_resolved(caplog: pytest.LogCaptureFixture) -> None:
    simulation = Simulation(1)
    channel = AnsweringChannel()
    requests = InSyncRequests(channel, simulation.host.clock)
    defective, others = ProposerWithDefect(1), [ProposerWithDefect(0) for _ in range(3)]

    async def story() -> None:
        for proposer in (defective, *others):
            requests.add(proposer)
        await pass_time(1)
        requests.stop()

    simulation.loop.run_until_complete(story())
    simulation.close()
    assert all(each.is_resolved for each in (defective, *others))
    assert channel.requests == [4, 1]
    assert "could not be applied" in caplog.text
    caplog.clear()
