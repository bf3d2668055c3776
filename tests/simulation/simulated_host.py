"""A host of which everything is decided by one seed: memory for a disk, virtual time, work done inline."""

import asyncio
import random
import uuid
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Concatenate, ParamSpec, TypeVar, TypeVarTuple

from odradek.host.background import BackgroundContext
from odradek.host.entropy import is_usable_uuid
from odradek.host.host import Host
from odradek.host.workers import DirectoryWorkers
from tests.simulation.simulated_clock import SimulatedClock, SimulatedLoop
from tests.simulation.simulated_disk import SimulatedDisk
from tests.simulation.simulated_network import SimulatedNetwork

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")
Parameters = ParamSpec("Parameters")


class SimulatedEntropy:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def uuid(self) -> uuid.UUID:
        while True:
            candidate = uuid.UUID(int=self._chance.getrandbits(128), version=4)
            if is_usable_uuid(candidate):
                return candidate

    def random_below(self, bound: int) -> int:
        return self._chance.randrange(bound)

    def nonce(self) -> str:
        return f"{self._chance.getrandbits(192):048x}"


class InlineWorkers:
    """Work is done in one piece, but not at once: a seeded number of turns lets others come between."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    async def run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        for _ in range(self._chance.randrange(3)):
            await asyncio.sleep(0)
        result = function(*args)
        for _ in range(self._chance.randrange(3)):
            await asyncio.sleep(0)
        return result

    def for_directory(self, path: str) -> DirectoryWorkers:
        return DirectoryWorkers(self, self)

    def close(self) -> None: ...


class InlineBackground:
    """The work of another process, in pieces between which others come."""

    def __init__(
        self, room: BackgroundContext, chance: random.Random, longest_pause_s: Callable[[], float] = lambda: 0.0
    ) -> None:
        """Each piece takes up to `longest_pause_s`, or a few turns of the event loop."""
        self._room = room
        self._chance = chance
        self._longest_pause_s = longest_pause_s

    async def stream(
        self,
        work: Callable[Concatenate[BackgroundContext, Parameters], Iterator[T]],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> AsyncGenerator[T, None]:
        for item in work(self._room, *args, **kwargs):
            for _ in range(self._chance.randrange(3)):
                await asyncio.sleep(0)
            if longest_pause_s := self._longest_pause_s():
                await asyncio.sleep(self._chance.random() * longest_pause_s)  # a poll's pause
            yield item

    async def close(self) -> None: ...


class Simulation:
    """One seed, one world. `host` is what the code under test gets; disk and clock stay when it crashes."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.loop = SimulatedLoop()
        self.clock = SimulatedClock(self.loop)
        self.disk = SimulatedDisk(self.clock.now_ms)
        self.background_context = BackgroundContext(self.disk, self.clock.monotonic_ms, lambda _: None)
        self.network = SimulatedNetwork(self.loop, random.Random(seed))
        self.host = Host(
            clock=self.clock,
            disk=self.disk,
            entropy=SimulatedEntropy(random.Random(self.chance.getrandbits(64))),
            workers=InlineWorkers(random.Random(self.chance.getrandbits(64))),
            background=InlineBackground(self.background_context, random.Random(self.chance.getrandbits(64))),
            network=self.network.from_machine("simulated"),
        )

    def crash(self) -> None:
        self.disk.crash(self.chance)

    def close(self) -> None:
        self.loop.close()
        self.disk.dispose()
