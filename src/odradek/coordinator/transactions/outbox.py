"""Items for other brokers: those that are added while a request is on its way go together with the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from odradek.client.broker_connection import BrokerUnavailable
from odradek.host.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from odradek.client.broker_address import BrokerAddress

log = get_logger(__name__)

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class BatchSender(Protocol[T_contra]):
    async def send(self, address: BrokerAddress, items: Sequence[T_contra]) -> None:
        """One request. Every item gets its answer before this returns. `BrokerUnavailable` if there is none."""

    def give_up(self, items: Sequence[T_contra]) -> None:
        """The broker was not reached, or this one stops: the items get no answer."""


class Outbox(Generic[T]):
    """One request at a time is on its way to each broker."""

    def __init__(
        self, sender: BatchSender[T], run: Callable[[Coroutine[Any, Any, None]], None], most_items: int
    ) -> None:
        """`run` starts a task, which may be cancelled. A request has up to `most_items`."""
        self._sender = sender
        self._run = run
        self._most_items = most_items
        self._waiting: dict[BrokerAddress, list[T]] = {}

    def add(self, address: BrokerAddress, item: T) -> None:
        waiting = self._waiting.get(address)
        if waiting is None:
            self._waiting[address] = [item]
            self._run(self._send_all(address))  # begins in the next turn of the event loop, with all items of this one
        else:
            waiting.append(item)

    async def _send_all(self, address: BrokerAddress) -> None:
        waiting = self._waiting[address]
        sending: list[T] = []
        try:
            while waiting:
                sending = waiting[: self._most_items]
                del waiting[: self._most_items]
                try:
                    await self._sender.send(address, sending)
                except BrokerUnavailable as problem:
                    log.debug("a broker is not reached", broker=address.node_id, reason=str(problem))
                    self._sender.give_up(sending)
                sending = []
        finally:
            del self._waiting[address]
            if sending or waiting:
                self._sender.give_up([*sending, *waiting])
