"""Items for other brokers: which of them share a request, and what a request that takes long holds up."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import pytest

from odradek.client.broker_address import BrokerAddress
from odradek.client.broker_connection import BrokerUnavailable
from odradek.coordinator.transactions import cluster_markers, local_markers
from odradek.coordinator.transactions.outbox import SLOW_REQUEST_MS, Outbox
from tests.simulation.simulated_host import Simulation

A, B = BrokerAddress(1, 0, "a", 9092), BrokerAddress(2, 0, "b", 9092)
LANES = 2


class Requests:
    """A sender whose requests are answered when a test says so."""

    def __init__(self) -> None:
        self.sent: list[tuple[BrokerAddress, list[int], int]] = []
        self.given_up: list[int] = []
        self._answers: dict[int, asyncio.Future[None]] = {}

    async def send(self, address: BrokerAddress, items: Sequence[int], lane: int) -> None:
        self.sent.append((address, list(items), lane))
        answer = self._answers[items[0]] = asyncio.get_running_loop().create_future()
        await answer

    def give_up(self, items: Sequence[int]) -> None:
        self.given_up += items

    def answer(self, first_item: int, problem: Exception | None = None) -> None:
        if problem is None:
            self._answers.pop(first_item).set_result(None)
        else:
            self._answers.pop(first_item).set_exception(problem)

    def items(self) -> list[list[int]]:
        return [items for _, items, _ in self.sent]


class World:
    def __init__(self) -> None:
        self.simulation = Simulation(0)
        self.requests = Requests()
        self.tasks: list[asyncio.Task[None]] = []
        self.outbox: Outbox[int] = Outbox(
            self.requests, self._run, self.simulation.clock, most_items=3, lane_count=LANES
        )

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(self.simulation.loop.create_task(coroutine))

    def do(self, *steps: Callable[[], object], wait_ms: float = 0.0) -> None:
        """Each step in a turn of its own; then time passes."""

        async def run() -> None:
            for step in steps:
                step()
                for _ in range(5):
                    await asyncio.sleep(0)
            await asyncio.sleep(wait_ms / 1000)  # a poll's pause: simulated time

        self.simulation.loop.run_until_complete(run())

    def add(self, *items: int, to: BrokerAddress = A) -> None:
        def add() -> None:
            for item in items:
                self.outbox.add(to, item)

        self.do(add)


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.simulation.loop.run_until_complete(asyncio.sleep(0))
    world.simulation.close()


def test_items_that_are_added_during_a_request_share_the_next(world: World) -> None:
    requests = world.requests
    world.add(1, 2)
    world.add(3)
    world.add(4, 5, 6)
    world.add(7, to=B)
    assert requests.sent == [(A, [1, 2], 0), (B, [7], 0)]
    world.do(lambda: requests.answer(1))
    assert requests.sent[2:] == [(A, [3, 4, 5], 0)]
    world.do(lambda: requests.answer(3))
    world.do(lambda: requests.answer(6), lambda: requests.answer(7))
    world.add(8)
    world.do(lambda: requests.answer(8))
    assert requests.items() == [[1, 2], [7], [3, 4, 5], [6], [8]]
    assert not world.outbox._queues, "nothing is kept for a broker without items"


def test_a_slow_request_does_not_hold_up_the_items_after_it(world: World) -> None:
    requests = world.requests
    world.add(1)
    world.add(2)
    world.do(wait_ms=SLOW_REQUEST_MS - 1)
    assert requests.items() == [[1]]
    world.do(wait_ms=2)
    assert requests.sent == [(A, [1], 0), (A, [2], 1)]
    world.do(lambda: requests.answer(2))
    world.add(3)
    assert requests.sent[2:] == [(A, [3], 1)], "it does not wait for the slow request"
    world.do(lambda: requests.answer(3), lambda: requests.answer(1))
    world.add(4)
    world.do(lambda: requests.answer(4))
    assert not world.outbox._queues


def test_the_number_of_requests_is_limited(world: World) -> None:
    requests = world.requests
    for item in range(1, 6):
        world.add(item)
        world.do(wait_ms=SLOW_REQUEST_MS + 1)
    assert requests.items() == [[1], [2]]
    world.do(lambda: requests.answer(1))
    assert requests.sent[2:] == [(A, [3, 4, 5], 0)]
    world.do(lambda: requests.answer(2), lambda: requests.answer(3))
    assert not world.outbox._queues


def test_items_of_a_broker_that_is_not_reached_are_given_up(world: World) -> None:
    requests = world.requests
    world.add(1)
    world.add(2)
    world.do(lambda: requests.answer(1, BrokerUnavailable("refused")))
    assert requests.given_up == [1]
    assert requests.items() == [[1], [2]]
    world.do(lambda: requests.answer(2))


@pytest.mark.parametrize("is_slow", [False, True])
def test_all_items_are_given_up_at_the_end(world: World, is_slow: bool) -> None:
    requests = world.requests
    for item in range(1, 5):
        world.add(item)
        world.do(wait_ms=SLOW_REQUEST_MS + 1 if is_slow else 0.0)
    world.do(*(task.cancel for task in world.tasks))
    assert sorted(requests.given_up) == [1, 2, 3, 4]
    assert not world.outbox._queues


def test_a_leader_answers_before_the_coordinator_gives_up() -> None:
    """Otherwise markers that are committed count as failed with those that are not."""
    assert local_markers.COMMIT_TIMEOUT_MS < cluster_markers.TIMEOUT_MS
