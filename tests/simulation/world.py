"""A broker on a simulated host, driven through the wire format, with a model of what it must remember beside it.

Every choice comes from one seed, so a failing seed replays exactly: `World.digest` covers every byte answered.
"""

import asyncio
import hashlib
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.listeners import Endpoint
from odradek.handlers.context import ClientConnection
from odradek.protocol.schema import Request, Response
from odradek.server.node import Node
from tests.simulation.simulated_host import Simulation
from tests.wire import decode_response, encode_request

AnyResponse = TypeVar("AnyResponse", bound="Response")
T = TypeVar("T")


class PowerLoss(BaseException):
    """The machine stopped in the middle of something; nothing may catch this but the world."""


@dataclass
class ModelBatch:
    base_offset: int
    last_offset: int
    content: bytes  # from the CRC on: what must come back unchanged
    producer: tuple[int, int] | None  # producer id and base sequence
    timestamp: int


@dataclass
class ModelPartition:
    batches: list[ModelBatch] = field(default_factory=list)
    start_offset: int = 0
    end_offset: int = 0
    durable_end_offset: int = 0

    def cut(self, end_offset: int) -> None:
        """What a crash left is a prefix."""
        self.batches = [batch for batch in self.batches if batch.last_offset < end_offset]
        self.end_offset = end_offset


@dataclass
class ModelTopic:
    topic_id: UUID
    flushes_each_append: bool
    partitions: list[ModelPartition]


class World:
    """One seed's broker, over all its lives."""

    def __init__(self, seed: int, properties: Mapping[str, str] | None = None) -> None:
        self.simulation = Simulation(seed)
        self.chance = self.simulation.chance
        self.topics: dict[str, ModelTopic] = {}
        self.cluster_id = ""
        self.operations = 0
        self.lives = 0
        self._journal = hashlib.sha256()
        self._config = BrokerConfig.from_properties(
            {"log.dirs": "/data", "auto.create.topics.enable": "false", **(properties or {})}
        )
        self._client = ClientConnection("PLAINTEXT", "simulated")
        self.run(self.start())

    @property
    def digest(self) -> str:
        return self._journal.hexdigest()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        asyncio.set_event_loop(None)
        return self.simulation.loop.run_until_complete(coroutine)

    async def start(self) -> None:
        self.lives += 1
        self.node = Node(self._config, self.simulation.host)
        await self.node.start()
        await self.node.serve({"PLAINTEXT": Endpoint("simulated", 9092)})

    async def restart(self) -> None:
        self.node.release_waiting_requests()
        await self.node.stop()
        await self.start()

    def lose_power(self) -> None:
        """Everything that was not synced is at stake; tasks and timers of the old life never run again."""
        self._cancel_all()
        loop = self.simulation.loop
        loop._scheduled.clear()  # type: ignore[attr-defined]  # asyncio has no other way to forget timers
        self.simulation.disk.sync_error = None
        self.simulation.crash()
        self.run(self.start())

    def handle(self, frame: memoryview) -> Any:
        """What the dispatcher makes of any bytes at all."""
        return self.node.compose_serving().dispatcher.handle(frame, self._client)

    async def call(self, request: Request, response: type[AnyResponse], version: int) -> AnyResponse:
        """One request through the dispatcher, in bytes both ways."""
        self.operations += 1
        frame = memoryview(bytearray(encode_request(request, version)[4:]))
        answer = self.handle(frame)
        if not isinstance(answer, list) and answer is not None:
            answer = await answer
        assert answer is not None
        data = b"".join(part if isinstance(part, bytes | bytearray) else _bytes_of(part) for part in answer)
        assert int.from_bytes(data[:4], "big") == len(data) - 4
        self._journal.update(data)
        return decode_response(response, data[4:], version)

    def close(self) -> None:
        self._cancel_all()
        self.simulation.close()

    def _cancel_all(self) -> None:
        """Also what others begin at their end: a task that never ran would be found, and reported, in another test."""
        while tasks := self.simulation.loop.unfinished_tasks():
            for task in tasks:
                task.cancel()
            self.run(_finished(tasks))


async def _finished(tasks: Iterable[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


def _bytes_of(part: Any) -> bytes:
    return bytes(part) if isinstance(part, memoryview) else part.read()
