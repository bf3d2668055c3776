"""The process of a simulated broker over all its lives: it starts, is killed, or loses power, and its disk stays."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from odradek.host.clock import Timer
from tests.simulation.simulated_clock import SimulatedClock, SimulatedLoop
from tests.simulation.simulated_disk import SimulatedDisk
from tests.simulation.simulated_network import SimulatedNetwork

T = TypeVar("T")
LIFE: contextvars.ContextVar[Life | None] = contextvars.ContextVar("life", default=None)


class Life:
    """From a start of the broker to its end. Its tasks and timers end with it."""

    def __init__(self) -> None:
        self.is_over = False
        self.tasks: dict[asyncio.Task[Any], None] = {}

    def end(self) -> None:
        self.is_over = True
        for task in tuple(self.tasks):
            task.cancel()


def tag_tasks(loop: SimulatedLoop) -> None:
    """Each task belongs to the life of the broker whose code began it."""

    def factory(loop: Any, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
        life = LIFE.get()
        if life is not None:
            life.tasks[task] = None
            task.add_done_callback(lambda done: life.tasks.pop(done, None))
        return task

    loop.set_task_factory(factory)


class LivingClock:
    def __init__(self, clock: SimulatedClock, life: Life) -> None:
        self._clock = clock
        self._life = life

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def monotonic_ms(self) -> float:
        return self._clock.monotonic_ms()

    def call_after(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        def call() -> None:
            if not self._life.is_over:
                callback()

        return self._clock.call_after(delay_ms, call)


class SimulatedProcess:
    def __init__(
        self, node_id: int, name: str, network: SimulatedNetwork, clock: SimulatedClock, chance: random.Random
    ) -> None:
        self.node_id = node_id
        self.name = name
        self._network = network
        self._clock = clock
        self._chance = chance
        self.disk = SimulatedDisk(clock.now_ms)
        self.life: Life | None = None
        self.is_ready = False
        self.errors: list[BaseException] = []

    @property
    def is_alive(self) -> bool:
        return self.life is not None

    def start(self) -> None:
        assert self.life is None
        self.life = Life()
        self._context = contextvars.copy_context()
        self._context.run(LIFE.set, self.life)
        self.spawn(self._run(self.life))

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task that ends with this life of the broker."""
        return self._context.run(asyncio.ensure_future, work)

    def kill(self) -> None:
        """The process dies; the operating system keeps what it wrote."""
        self._end()
        self.disk.kill()

    def lose_power(self) -> None:
        self._end()
        self.disk.crash(self._chance)

    def _end(self) -> None:
        assert self.life is not None
        self.is_ready = False
        self._network.crash(self.name)
        self.life.end()
        self.life = None

    async def _run(self, life: Life) -> None:
        try:
            await self._live(life)
        except asyncio.CancelledError:
            raise
        except BaseException as problem:
            if not self._may_end_with(problem):
                if self.life is life:
                    self.errors.append(problem)
                raise
            if self.life is life:
                self.kill()

    def _may_end_with(self, problem: BaseException) -> bool:
        """Whether the process ends by itself, instead of failing, with this problem."""
        return False

    async def _live(self, life: Life) -> None:
        """The broker's own code, which sets `is_ready`."""
        raise NotImplementedError
