"""Items for other brokers: those that are added while a request is on its way go together with the next one.

A request that takes long does not hold up the items after it: the outbox has several lanes to each broker, and uses
another one while a request is slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from odradek.client.broker_connection import BrokerUnavailable
from odradek.host.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from odradek.client.broker_address import BrokerAddress
    from odradek.host.clock import Clock

log = get_logger(__name__)

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

SLOW_REQUEST_MS = 200.0  # longer than replicas that are in sync take


class BatchSender(Protocol[T_contra]):
    async def send(self, address: BrokerAddress, items: Sequence[T_contra], lane: int) -> None:
        """One request; those of different lanes are concurrent. Every item gets its answer before this returns.
        `BrokerUnavailable` if there is none."""

    def give_up(self, items: Sequence[T_contra]) -> None:
        """The broker was not reached, or this one stops: the items get no answer."""


class _Queue(Generic[T]):
    """The items for one broker. `is_served`: a lane sends what waits, in the next turn of the event loop or after a
    request that is not slow."""

    __slots__ = ("free_lanes", "is_served", "waiting")

    def __init__(self, lane_count: int) -> None:
        self.waiting: list[T] = []
        self.free_lanes = list(reversed(range(lane_count)))
        self.is_served = False


class Outbox(Generic[T]):
    """One request at a time is on its way in each lane."""

    def __init__(
        self,
        sender: BatchSender[T],
        run: Callable[[Coroutine[Any, Any, None]], None],
        clock: Clock,
        *,
        most_items: int,
        lane_count: int = 1,
    ) -> None:
        """`run` starts a task, which may be cancelled. A request has up to `most_items`."""
        self._sender = sender
        self._run = run
        self._clock = clock
        self._most_items = most_items
        self._lane_count = lane_count
        self._queues: dict[BrokerAddress, _Queue[T]] = {}

    def add(self, address: BrokerAddress, item: T) -> None:
        queue = self._queues.get(address)
        if queue is None:
            queue = self._queues[address] = _Queue(self._lane_count)
        queue.waiting.append(item)
        self._serve(address, queue)

    def _serve(self, address: BrokerAddress, queue: _Queue[T]) -> None:
        """Sends the queue on a free connection unless one is already sending it."""
        if queue.waiting and queue.free_lanes and not queue.is_served:
            queue.is_served = True
            # It begins in the next turn of the event loop, with all items of this one.
            self._run(self._send_all(address, queue, queue.free_lanes.pop()))

    async def _send_all(self, address: BrokerAddress, queue: _Queue[T], lane: int) -> None:
        is_serving = True
        sending: list[T] = []

        def step_aside() -> None:
            nonlocal is_serving
            is_serving = queue.is_served = False
            self._serve(address, queue)

        try:
            while queue.waiting and (is_serving or not queue.is_served):
                is_serving = queue.is_served = True
                sending = queue.waiting[: self._most_items]
                del queue.waiting[: self._most_items]
                timer = self._clock.call_after(SLOW_REQUEST_MS, step_aside)
                try:
                    await self._sender.send(address, sending, lane)
                except BrokerUnavailable as problem:
                    log.debug("a broker is not reached", broker=address.node_id, reason=problem)
                    self._sender.give_up(sending)
                finally:
                    timer.cancel()
                sending = []
        finally:
            queue.free_lanes.append(lane)
            if is_serving:
                queue.is_served = False
            if len(queue.free_lanes) == self._lane_count:
                self._queues.pop(address, None)
            if not queue.is_served:
                sending += queue.waiting
                queue.waiting.clear()
            if sending:
                self._sender.give_up(sending)
