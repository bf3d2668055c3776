"""A broker on a simulated host that can die in the middle of anything while its clients go on.

Every task and timer of one life of the broker carries the number of that life in its context, so a death ends these and
no others.
"""

import asyncio
import contextvars
import hashlib
import inspect
import random
from collections.abc import Callable, Coroutine, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.listeners import Endpoint
from odradek.coordinator.runtime.waiting_response import WaitingResponse
from odradek.coordinator.transactions.local_markers import LocalMarkers
from odradek.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.handlers.context import ClientConnection
from odradek.server.node import Node
from tests.simulation.simulated_host import Simulation

_LIFE: contextvars.ContextVar[int] = contextvars.ContextVar("life", default=0)


class Died(BaseException):
    """The power failed in the middle of a disk operation; nothing in the broker may catch this."""


def delay_verification(transactions: TransactionCoordinator, delay_s: Callable[[], float]) -> None:
    """What was true when the coordinator answered need not be true when the answer arrives."""
    original = transactions.verify_partitions

    def verify(*args: Any) -> WaitingResponse:
        *_, partitions = args
        arriving = WaitingResponse(lambda error: dict.fromkeys(partitions, error))

        async def send() -> None:
            answer = original(*args)
            answer = await answer if inspect.isawaitable(answer) else answer
            await asyncio.sleep(delay_s())  # a poll's pause: simulated time
            arriving(answer)

        under_way.add(sending := asyncio.ensure_future(send()))
        sending.add_done_callback(under_way.discard)
        return arriving

    under_way: set[asyncio.Task[None]] = set()
    transactions.verify_partitions = verify  # type: ignore[method-assign, assignment]  # answers late


def delay_markers(leaders: LocalMarkers, chance: random.Random, delay_s: Callable[[], float]) -> None:
    """Every other marker goes to a partition that another broker leads."""
    original = leaders.append_marker

    def append(*args: Any, **how: Any) -> Any:
        return asyncio.ensure_future(send(*args, **how)) if chance.random() < 0.5 else original(*args, **how)

    async def send(*args: Any, **how: Any) -> Any:
        await asyncio.sleep(delay_s())  # a poll's pause: simulated time
        outcome = original(*args, **how)
        return await outcome if inspect.isawaitable(outcome) else outcome

    leaders.append_marker = append  # type: ignore[method-assign]  # writes late


class SimulatedBroker:
    def __init__(
        self, simulation: Simulation, properties: Mapping[str, str], message_delay_s: Callable[[], float] | None = None
    ) -> None:
        """`message_delay_s`: how long what the coordinator and a partition say to each other is under way, as between
        brokers."""
        self._simulation = simulation
        self._message_delay_s = message_delay_s
        self._config = BrokerConfig.from_properties(dict(properties))
        self._client = ClientConnection("PLAINTEXT", "simulated")
        self.life = 0
        self.is_up = False
        self.node: Node | None = None
        self._lives: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        self.journal = hashlib.sha256()  # every request that arrives and every answer, with their times
        self._requests: dict[int, asyncio.Event] = {}  # that are waited for, by the number of their API
        simulation.loop.set_task_factory(self._make_task)  # type: ignore[arg-type]  # the stub lacks `context`

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any],
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, context=context)
        self._lives[task] = _LIFE.get() if context is None else context.get(_LIFE, 0)
        return task

    def _spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        context = contextvars.Context()
        context.run(_LIFE.set, self.life)
        return self._simulation.loop.create_task(coroutine, context=context)

    async def start(self) -> None:
        self.life += 1
        await self._spawn(self._start())
        self.is_up = True

    async def _start(self) -> None:
        self.node = Node(self._config, self._simulation.host)
        await self.node.start()
        await self.node.serve({"PLAINTEXT": Endpoint("simulated", 9092)})
        if self._message_delay_s is not None:
            transactions = self.node.compose_serving().dispatcher._services.transactions
            delay_verification(transactions, self._message_delay_s)
            delay_markers(transactions.leaders, self._simulation.chance, self._message_delay_s)

    async def stop(self) -> None:
        """Shut down in order, with clients in the middle of their requests."""
        assert self.node is not None
        self.is_up = False
        self.node.release_waiting_requests()
        await self._spawn(self.node.stop())
        self._end_life()

    def die(self, *, loses_power: bool) -> None:
        self.is_up = False
        disk = self._simulation.disk
        disk.interruption = disk.operations_left = None
        if loses_power:
            self._simulation.crash()
        else:
            disk.kill()
        self._end_life()

    def _end_life(self) -> None:
        loop = self._simulation.loop
        for handle in list(loop._scheduled):  # type: ignore[attr-defined]  # asyncio has no other way to find timers
            if handle._context.get(_LIFE) == self.life:
                handle.cancel()
        for task in loop.unfinished_tasks():
            if self._lives.get(task) == self.life:
                task.cancel()

    async def handle(self, frame: bytes) -> bytes | None:
        """The answer; None when the connection ends without one."""
        answer = await self._answer(frame)
        self.journal.update(repr((self._simulation.loop.time(), frame, answer)).encode())
        return answer

    async def _answer(self, frame: bytes) -> bytes | None:
        if not self.is_up or self.is_dying:
            return None
        life = self.life
        self._requests.pop(int.from_bytes(frame[:2], "big"), asyncio.Event()).set()
        task = self._spawn(self._handle(bytearray(frame)))
        await asyncio.wait([task])
        if task.cancelled() or self.life != life or not self.is_up or self.is_dying:
            if not task.cancelled():
                task.exception()  # or it would be reported as never retrieved
            return None
        return None if task.exception() is not None else task.result()

    def end_offset(self, topic: str, index: int) -> int:
        """The log end, which no request shows."""
        assert self.node is not None
        partition = self.node.compose_serving().dispatcher._services.partitions.find(
            topic, index
        )  # no request shows it
        assert partition is not None
        return partition.log.log_end_offset

    async def next_request(self, api_key: int) -> None:
        await self._requests.setdefault(api_key, asyncio.Event()).wait()

    @property
    def is_dying(self) -> bool:
        """Whether a disk operation was interrupted."""
        left = self._simulation.disk.operations_left
        return left is not None and left < 0

    async def _handle(self, frame: bytearray) -> bytes | None:
        assert self.node is not None
        answer = self.node.compose_serving().dispatcher.handle(memoryview(frame), self._client)
        if answer is not None and not isinstance(answer, list):
            frame[:] = bytes(len(frame))  # the receive buffer is used again
            answer = await answer
        if answer is None:
            return None
        return b"".join(
            bytes(part) if isinstance(part, bytes | bytearray | memoryview) else part.read() for part in answer
        )
