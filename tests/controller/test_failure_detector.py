"""Which brokers the controller fences before their sessions expire, and when it steps down instead."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.client.broker_clients import BrokerClients
from odradek.configuration.listeners import Endpoint
from odradek.controller.failure_detector import FailureDetector
from odradek.metadata.entities import BrokerImage
from odradek.metadata.store import StoreError
from tests.client.peer import Peer
from tests.simulation.simulated_host import Simulation

OWN, OTHERS = 1, (2, 3)
TIMEOUT_MS = 2_500
PORT = 9092


class Scene:
    """Broker 1 with the metadata that the test gives it, and two others on a simulated network."""

    def __init__(self, controller_id: int = OWN) -> None:
        self.simulation = Simulation(3)
        self.network = self.simulation.network
        self.clients = BrokerClients(self.simulation.host, "odradek-1")
        config = SimpleNamespace(
            node_id=OWN, broker_session_timeout_ms=TIMEOUT_MS, broker_heartbeat_interval_ms=TIMEOUT_MS / 5
        )
        brokers = {
            node_id: BrokerImage(node_id, {"PLAINTEXT": Endpoint(f"broker-{node_id}", PORT)}, None, 10 + node_id)
            for node_id in (OWN, *OTHERS)
        }
        self.image = SimpleNamespace(brokers=brokers, controller_id=controller_id, controller_epoch=1)
        self.subscribers: list[Any] = []
        cache = SimpleNamespace(
            image=self.image, broker_config=config, subscribe=self.subscribers.append, unsubscribe=lambda _: None
        )
        self.fenced: dict[int, int] = {}
        self.removed_claims: list[int] = []
        self.step_downs = 0
        self.store_failures = 0
        self.failure: Exception = StoreError("ZooKeeper does not answer")
        self.silent: list[int] = []
        self.cluster = SimpleNamespace(fence_brokers=self._fence, is_unreachable=lambda *_: False)
        controller = SimpleNamespace(is_active=True, cluster=self.cluster)
        self.detector = FailureDetector(
            cache,  # type: ignore[arg-type]  # it uses the image only
            self.clients,
            self.simulation.host.clock,
            "PLAINTEXT",
            lambda: controller,  # type: ignore[arg-type, return-value]  # a stand-in
            self._remove_claim,
            self._step_down,
            self.silent.append,
        )
        for node_id in OTHERS:
            self.listen(node_id)

    def listen(self, node_id: int) -> None:
        self.network.listen(f"broker-{node_id}", PORT, lambda: Peer(lambda _peer, _header: None))

    async def _fence(self, registrations: dict[int, int]) -> None:
        if self.store_failures:
            self.store_failures -= 1
            raise self.failure
        self.fenced |= registrations

    async def _remove_claim(self, node_id: int) -> None:
        self.removed_claims.append(node_id)

    def _step_down(self) -> None:
        self.step_downs += 1

    def become_controller(self) -> None:
        before = SimpleNamespace(**vars(self.image))
        self.image.controller_id, self.image.controller_epoch = OWN, 2
        for subscriber in self.subscribers:
            subscriber(before, self.image)

    def cut(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.network.cut("simulated", f"broker-{node_id}")
            self.network.cut(f"broker-{node_id}", "simulated")

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        async def whole() -> None:
            self.detector.start()
            await asyncio.sleep(2 * TIMEOUT_MS / 1000)  # a poll's pause: simulated time
            await story
            self.detector.stop()
            self.clients.close()
            await asyncio.sleep(0)

        try:
            self.simulation.loop.run_until_complete(whole())
        finally:
            self.simulation.close()


async def pass_timeouts(count: float) -> None:
    await asyncio.sleep(count * TIMEOUT_MS / 1000)  # a poll's pause: simulated time


def test_brokers_that_answer_are_left_alone() -> None:
    scene = Scene()

    async def story() -> None:
        await pass_timeouts(10)
        assert scene.fenced == {}
        assert scene.step_downs == 0

    scene.run(story())


def test_a_broker_that_refuses_connections_after_it_has_accepted_one_is_fenced_at_once() -> None:
    scene = Scene()

    async def story() -> None:
        scene.network.crash("broker-2")
        await pass_timeouts(0.5)
        assert scene.fenced == {2: 12}

    scene.run(story())


def test_a_broker_that_starts_is_not_fenced() -> None:
    scene = Scene()
    scene.network.crash("broker-2")

    async def story() -> None:
        await pass_timeouts(10)
        assert scene.fenced == {}

    scene.run(story())


def test_a_silent_broker_is_fenced_by_a_controller_that_reaches_most() -> None:
    scene = Scene()

    async def story() -> None:
        scene.cut(2)
        await pass_timeouts(0.8)
        assert scene.fenced == {}, "it may still answer"
        await pass_timeouts(1.2)
        assert scene.fenced == {2: 12}
        assert scene.step_downs == 0

    scene.run(story())


def test_a_controller_that_reaches_nobody_fences_nobody_and_steps_down() -> None:
    """The first of the others to be silent must not be fenced while the second is about to be."""
    scene = Scene()

    async def story() -> None:
        scene.cut(2, 3)
        await pass_timeouts(3)
        assert scene.fenced == {}
        assert scene.step_downs > 0

    scene.run(story())


@pytest.mark.parametrize("has_ended", [True, False])
def test_the_successor_fences_the_controller_that_it_has_seen_fail(has_ended: bool) -> None:
    scene = Scene(controller_id=2)

    async def story() -> None:
        if has_ended:
            scene.network.crash("broker-2")
            await pass_timeouts(0.5)
            assert scene.removed_claims == [2]
        else:
            scene.cut(2)
            await pass_timeouts(3)
            assert scene.removed_claims == [], "its session decides"
        assert scene.fenced == {}
        scene.become_controller()
        await pass_timeouts(1)
        assert scene.fenced == {2: 12}

    scene.run(story())


@pytest.mark.parametrize("is_late", [True, False])
def test_the_successor_fences_a_broker_that_has_ended_together_with_the_controller(is_late: bool) -> None:
    """It had no heartbeats with that broker, but has once connected to it."""
    scene = Scene(controller_id=2)

    async def story() -> None:
        scene.network.crash("broker-2")
        scene.network.crash("broker-3")
        await pass_timeouts(5 if is_late else 0.1)
        scene.become_controller()
        await pass_timeouts(0.5)
        assert scene.fenced == {2: 12, 3: 13}

    scene.run(story())


@pytest.mark.parametrize("failure", [StoreError("ZooKeeper does not answer"), RuntimeError("a defect")])
def test_a_broker_is_fenced_again_when_fencing_has_failed(failure: Exception) -> None:
    scene = Scene()
    scene.store_failures = 2
    scene.failure = failure

    async def story() -> None:
        scene.network.crash("broker-2")
        await pass_timeouts(2)
        assert scene.store_failures == 0
        assert scene.fenced == {2: 12}

    scene.run(story())


def test_a_broker_that_answers_again_is_fenced_when_it_falls_silent_again() -> None:
    """The metadata that has it fenced and unfenced may be loaded in one step, so that it is watched all the time."""
    scene = Scene()

    async def story() -> None:
        for _ in range(2):
            scene.cut(2)
            await pass_timeouts(2)
            assert scene.fenced == {2: 12}
            scene.fenced.clear()
            scene.network.heal()
            await pass_timeouts(2)

    scene.run(story())


def test_a_broker_stays_fenced_until_the_controller_reaches_it() -> None:
    scene = Scene()

    async def story() -> None:
        scene.cut(2)
        await pass_timeouts(2)
        assert scene.fenced == {2: 12}
        before = SimpleNamespace(**vars(scene.image))
        scene.image.brokers = scene.image.brokers | {2: replace(scene.image.brokers[2], is_fenced=True)}
        scene.detector._follow(before, scene.image)  # type: ignore[arg-type]  # it uses little of an image
        await pass_timeouts(3)
        assert scene.cluster.is_unreachable(2, 12)
        assert not scene.cluster.is_unreachable(2, 13), "another registration, of another address"
        scene.network.heal()
        await pass_timeouts(1)
        assert not scene.cluster.is_unreachable(2, 12)

    scene.run(story())


def test_requests_to_a_silent_controller_are_given_up() -> None:
    scene = Scene(controller_id=2)

    async def story() -> None:
        assert scene.silent == []
        scene.cut(2)
        await pass_timeouts(2)
        assert set(scene.silent) == {2}

    scene.run(story())
