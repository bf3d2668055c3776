"""The way between clients and a broker: requests and answers are late, lost, repeated, and overtake others."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.schema import Request, Response
from tests.transactions.requests import Lost
from tests.wire import decode_response, encode_request

AnyResponse = TypeVar("AnyResponse", bound="Response")

LONGEST_ANSWER_S = 20.0
IMPATIENT_S = 0.5


class Broker(Protocol):
    async def handle(self, frame: bytes) -> bytes | None:
        """The answer, with its size in front; None when the connection ends without one."""


class _Frame(NamedTuple):
    data: bytes
    starts: str | None
    """The transactional id whose earlier producers it fences."""


class FaultyNetwork:
    """A client waits `client_timeout_s` for a request that is lost; one that is late comes up to `latest_s` later. Some
    clients do not wait for answers that take long."""

    def __init__(
        self, broker: Broker, chance: random.Random, *, client_timeout_s: float = 3.0, latest_s: float = 15.0
    ) -> None:
        self._broker = broker
        self._client_timeout_s = client_timeout_s
        self._latest_s = latest_s
        self._chance = chance
        self.is_faulty = True
        self.requests = 0
        self.starts: Counter[str] = Counter()
        """By transactional id, how often a producer's start has reached the broker or has left it: as long as this
        stays the same, no producer of the id fences another one."""
        self._late: set[asyncio.Task[bytes | None]] = set()

    def connect(self, on_late_request: Callable[[], None] = lambda: None) -> FaultyConnection:
        return FaultyConnection(self, on_late_request)

    async def carry(self, frame: _Frame, connection: FaultyConnection) -> bytes:
        """One request and its answer."""
        self.requests += 1
        chance = self._chance
        for held in connection.take_held():
            self._deliver_late(held, chance.random() * 0.01)
        fate = chance.random() if self.is_faulty else 1.0
        if fate < 0.01:  # the request is lost
            await asyncio.sleep(self._client_timeout_s)  # a poll's pause
            raise Lost
        if fate < 0.03:  # it arrives together with the client's next request
            connection.hold(frame)
            await asyncio.sleep(self._client_timeout_s)  # a poll's pause
            raise Lost
        if fate < 0.04:  # it arrives after the client has given up
            connection.on_late_request()
            self._deliver_late(frame, self._client_timeout_s + chance.random() * self._latest_s)
            await asyncio.sleep(self._client_timeout_s)  # a poll's pause
            raise Lost
        delivery = asyncio.ensure_future(self._deliver(frame, chance.random() * 0.01))
        is_impatient = self.is_faulty and chance.random() < 0.1
        patience_s = chance.random() * IMPATIENT_S if is_impatient else LONGEST_ANSWER_S
        done, _ = await asyncio.wait([delivery], timeout=patience_s)
        if not done:
            connection.on_late_request()
            self._keep(delivery)
            raise Lost
        answer = delivery.result()
        if fate < 0.06:  # it arrives twice
            connection.on_late_request()
            self._deliver_late(frame, chance.random() * self._latest_s)
        if fate > 0.98 and self.is_faulty:  # the answer is lost
            await asyncio.sleep(self._client_timeout_s)  # a poll's pause
            raise Lost
        if answer is None:
            await asyncio.sleep(0.1)  # a poll's pause
            raise Lost
        await asyncio.sleep(chance.random() * 0.01)  # a poll's pause
        return answer

    async def wait_for_late_requests(self) -> None:
        while self._late:
            await asyncio.wait(self._late)

    async def _deliver(self, frame: _Frame, delay_s: float) -> bytes | None:
        await asyncio.sleep(delay_s)  # a poll's pause
        if frame.starts is None:
            return await self._broker.handle(frame.data)
        self.starts[frame.starts] += 1
        try:
            return await self._broker.handle(frame.data)
        finally:
            self.starts[frame.starts] += 1

    def _deliver_late(self, frame: _Frame, delay_s: float) -> None:
        self._keep(asyncio.ensure_future(self._deliver(frame, delay_s)))

    def _keep(self, task: asyncio.Task[bytes | None]) -> None:
        self._late.add(task)
        task.add_done_callback(self._late.discard)


class FaultyConnection:
    def __init__(self, network: FaultyNetwork, on_late_request: Callable[[], None]) -> None:
        self._network = network
        self._held: list[_Frame] = []
        self.on_late_request = on_late_request

    async def call(self, request: Request, response: type[AnyResponse], version: int) -> AnyResponse:
        starts = request.transactional_id if isinstance(request, InitProducerIdRequest) else None
        data = await self._network.carry(_Frame(encode_request(request, version)[4:], starts), self)
        return decode_response(response, data[4:], version)

    def starts(self, transactional_id: str) -> int:
        return self._network.starts[transactional_id]

    def hold(self, frame: _Frame) -> None:
        self.on_late_request()
        self._held.append(frame)

    def take_held(self) -> list[_Frame]:
        held, self._held = self._held, []
        return held
