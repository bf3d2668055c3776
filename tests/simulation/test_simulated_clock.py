"""Virtual time: days pass at once, in a fixed order, and a program that would hang says so."""

import asyncio

import pytest

from tests.simulation.simulated_clock import NothingLeftToDo
from tests.simulation.simulated_host import Simulation


def test_a_day_passes_at_once() -> None:
    simulation = Simulation(0)

    async def wait_a_day() -> list[str]:
        started_ms, monotonic_ms = simulation.clock.now_ms(), simulation.clock.monotonic_ms()
        calls: list[str] = []
        simulation.clock.call_after(2000, lambda: calls.append("later"))
        simulation.clock.call_after(1000, lambda: calls.append("sooner"))
        simulation.clock.call_after(1500, lambda: calls.append("never")).cancel()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 24 * 3600)
        assert simulation.clock.now_ms() - started_ms == 24 * 3600 * 1000
        assert simulation.clock.monotonic_ms() - monotonic_ms == pytest.approx(24 * 3600 * 1000)
        return calls

    assert simulation.loop.run_until_complete(wait_a_day()) == ["sooner", "later"]
    simulation.close()


def test_waiting_for_what_never_comes_is_an_error() -> None:
    simulation = Simulation(0)
    waiting = simulation.loop.create_task(asyncio.Event().wait())
    with pytest.raises(NothingLeftToDo):
        simulation.loop.run_until_complete(waiting)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        simulation.loop.run_until_complete(waiting)
    simulation.close()


def test_the_same_seed_is_the_same_world() -> None:
    def draw(seed: int) -> object:
        simulation = Simulation(seed)
        entropy = simulation.host.entropy
        drawn = (entropy.uuid(), entropy.random_below(1000), simulation.chance.random(), simulation.clock.now_ms())
        total = simulation.loop.run_until_complete(simulation.host.workers.run(sum, (1, 2)))
        simulation.close()
        return drawn, total

    assert draw(3) == draw(3)
    assert draw(3) != draw(4)
