"""The broker's handlers, log and metadata on a simulated host: no sockets, no real disk, no wall clock.

Seeds are fixed, so that a failure is a fact and not a mood; `ODRADEK_SIMULATION_SEEDS=1000-1999` runs others.
"""

import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.seeds import seed_parameters
from tests.simulation import processes
from tests.simulation.operations import Operations
from tests.simulation.world import PowerLoss, World

STEPS = 400


def live(seed: int) -> World:
    """One seed's story: steps of clients, restarts, and crashes, some of them in the middle of a step."""
    world = World(seed)
    operations = Operations(world)
    chance = world.chance
    for _ in range(STEPS):
        fate = chance.random()
        if fate < 0.01:
            world.run(world.restart())
            world.run(operations.describe())
        elif fate < 0.02:
            world.lose_power()
            world.run(operations.reconcile())
        elif fate < 0.03:
            world.simulation.disk.sync_error = PowerLoss()
            with suppress(PowerLoss):
                world.run(operations.produce())
            world.lose_power()
            world.run(operations.reconcile())
        else:
            world.run(operations.step())
    world.run(operations.reconcile())
    return world


@pytest.mark.parametrize("seed", seed_parameters("ODRADEK_SIMULATION_SEEDS", range(12), quick=2))
def test_what_was_acknowledged_is_remembered_through_restarts_and_crashes(seed: int) -> None:
    world = live(seed)
    assert world.lives > 1
    world.close()


@pytest.mark.soak
def test_a_seed_replays_exactly() -> None:
    first, second = live(7), live(7)
    assert first.digest == second.digest
    assert first.operations == second.operations
    other = live(8)
    assert other.digest != first.digest
    for world in (first, second, other):
        world.close()


def test_a_seed_replays_exactly_in_another_process() -> None:
    program = (
        "from tests.simulation.test_broker_simulation import live; print(*[live(seed).digest for seed in range(3)])"
    )
    one, other = processes.outputs(program)
    assert len(one.split()) == 3
    assert one == other


def test_thousands_of_operations_a_second(record_property: Callable[[str, object], None]) -> None:
    began = time.process_time()
    operations = 0
    for seed in range(100, 102):
        world = live(seed)
        operations += world.operations
        world.close()
    rate = operations / (time.process_time() - began)
    record_property("operations_per_second", round(rate))
    assert rate > 1000
