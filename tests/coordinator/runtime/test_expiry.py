"""Expiry visits every key of every active shard, in slices, and never by a clock that is in doubt."""

import asyncio
from collections.abc import Iterator
from typing import cast

import pytest

from odradek.coordinator.runtime.expiry import Expiry
from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.replica.clock_skew_guard import ClockSkewGuard
from tests.coordinator.runtime.counter import Counters
from tests.coordinator.runtime.fake_shard_log import FakeShardLog
from tests.simulation.simulated_host import Simulation

INTERVAL_MS = 60_000.0
KEYS = [f"key-{number}" for number in range(100)]


class Time:
    is_skewed = False


class Stage:
    def __init__(self) -> None:
        self.simulation = Simulation(0)
        self.clock = self.simulation.clock
        self.time = Time()
        self.expired: list[str] = []
        self.has_visited = asyncio.Event()
        self.runtime: CoordinatorRuntime[Counters] = CoordinatorRuntime(
            self.clock, Counters, answer_timeout_ms=lambda: 5000
        )
        self.expiry = Expiry(
            self.runtime,
            self.clock,
            cast("ClockSkewGuard", self.time),
            interval_ms=lambda: INTERVAL_MS,
            keys=lambda _: KEYS,
            expire=lambda _, key: self.visit(key),
            keys_per_slice=10,
        )

    def visit(self, key: str) -> None:
        self.expired.append(key)
        self.has_visited.set()

    async def start(self) -> None:
        self.runtime.follow([FakeShardLog()], 1)
        self.expiry.start()

    async def pass_interval(self) -> None:
        await asyncio.sleep(INTERVAL_MS / 1000 + 1)  # a poll's pause: simulated time


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.simulation.close()


def test_every_key_is_visited_in_every_round(stage: Stage) -> None:
    async def scenario() -> None:
        await stage.start()
        for rounds in range(3):
            assert stage.expired == KEYS * rounds
            await stage.pass_interval()
        stage.expiry.stop()
        await stage.pass_interval()
        assert stage.expired == KEYS * 3

    stage.simulation.loop.run_until_complete(scenario())


def test_nothing_expires_by_a_clock_that_is_in_doubt(stage: Stage) -> None:
    async def scenario() -> None:
        await stage.start()
        stage.time.is_skewed = True
        await stage.pass_interval()
        assert not stage.expired
        stage.time.is_skewed = False
        await stage.pass_interval()
        assert stage.expired == KEYS
        stage.expiry.stop()

    stage.simulation.loop.run_until_complete(scenario())


def test_a_shard_that_is_lost_between_slices_is_left_alone(stage: Stage) -> None:
    async def scenario() -> None:
        await stage.start()
        await stage.has_visited.wait()
        stage.runtime.follow([], 1)
        await stage.pass_interval()
        assert 0 < len(stage.expired) < len(KEYS)
        stage.expiry.stop()

    stage.simulation.loop.run_until_complete(scenario())
