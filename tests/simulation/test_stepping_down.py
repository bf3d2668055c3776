"""A controller that steps down, one whose process has ended, and a broker that stays fenced while nobody answers it."""

from collections.abc import Awaitable, Callable

from odradek.controller.controller_election import PAUSE_AFTER_STEPPING_DOWN_MS
from odradek.controller.requests import UnfenceBroker
from odradek.metadata.store import StoreError
from tests.simulation.simulated_clock import pass_time
from tests.simulation.simulated_cluster import SimulatedCluster, SimulatedMember


def run(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    cluster = SimulatedCluster(seed=1)

    async def whole() -> None:
        for member in cluster.members:
            await member.start()
        await story(cluster)

    try:
        cluster.run(whole())
    finally:
        cluster.close()


def the_controller(cluster: SimulatedCluster) -> SimulatedMember:
    (member,) = cluster.controllers
    return member


def test_another_broker_follows_a_controller_that_steps_down() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        first = the_controller(cluster)
        first.coordination.election.step_down()
        await pass_time(1.0)
        assert the_controller(cluster) is not first

    run(story)


def test_a_controller_that_has_stepped_down_stands_again_when_nobody_else_does() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        first = the_controller(cluster)
        for member in cluster.members:
            if member is not first:
                await member.stop()
        first.coordination.election.step_down()
        await pass_time(1.0)
        assert cluster.controllers == []
        await pass_time(PAUSE_AFTER_STEPPING_DOWN_MS / 1000)
        assert the_controller(cluster) is first

    run(story)


def test_the_claim_of_a_controller_that_has_ended_is_removed_before_its_session_expires() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        first = the_controller(cluster)
        other = next(member for member in cluster.members if member is not first)
        await other.coordination.election.remove_claim_of(first.node_id)
        await pass_time(1.0)
        second = the_controller(cluster)
        await other.coordination.election.remove_claim_of(first.node_id)
        await pass_time(1.0)
        assert the_controller(cluster) is second, "a claim of another broker is not removed"

    run(story)


def test_a_fenced_broker_asks_to_take_part_until_it_is_answered() -> None:
    """The controller may not be reached for longer than one request waits."""

    async def story(cluster: SimulatedCluster) -> None:
        controller = the_controller(cluster).coordination.election.controller
        assert controller is not None
        member = next(each for each in cluster.members if each is not the_controller(cluster))
        coordination = member.coordination
        failures = [StoreError("no controller has answered")] * 3

        async def unfence() -> bool:
            if failures:
                raise failures.pop()
            broker_epoch = coordination.membership.broker_epoch
            status = await controller.ask(UnfenceBroker(member.node_id, broker_epoch))
            return not status.result.is_fenced

        coordination._session.unfence = unfence  # type: ignore[method-assign]  # fails at first
        await controller.cluster.fence_brokers({member.node_id: coordination.membership.broker_epoch})
        await pass_time(10.0)
        assert not failures
        assert not coordination.metadata.image.brokers[member.node_id].is_fenced

    run(story)
