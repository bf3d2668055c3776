"""A broker under test: Odradek on a simulated host, or Apache Kafka, behind the same few calls.

The rules in this folder are Kafka's: in `make oracle` the tests that read no internal state run on Apache Kafka.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.listeners import Endpoint
from odradek.handlers.context import ClientConnection, CloseConnection, Services
from odradek.handlers.dispatch import Answer
from odradek.host.workers import Workers
from odradek.protocol.schema import Request, Response
from odradek.replica.partition import Partition
from odradek.server.node import Node
from tests.simulation.simulated_host import Simulation
from tests.waiting import eventually
from tests.wire import WireClient, decode_response, encode_request

T = TypeVar("T")
Told_co = TypeVar("Told_co", covariant=True)
AnyResponse = TypeVar("AnyResponse", bound="Response")

SETTLING_SECONDS = 10.0


class Pending(Protocol[Told_co]):
    """A request that was sent and is not answered yet."""

    def result(self) -> Told_co: ...


class AnyBroker(Protocol):
    is_apache_kafka: bool

    def call(self, request: Request, response: type[AnyResponse], version: int | None = None) -> AnyResponse: ...

    def begin(
        self, request: Request, response: type[AnyResponse], version: int | None = None
    ) -> Pending[AnyResponse]: ...

    def send(self, request: Request, version: int) -> None:
        """A request that has no answer; CloseConnection when the broker hangs up on it."""

    def elapsed_ms(self) -> float: ...

    def settle(self, condition: Callable[[], bool]) -> None:
        """Apache Kafka follows its metadata a little later; here what was answered holds at once."""


class SimulatedPending(Generic[T]):
    def __init__(self, broker: SimulatedBroker, task: asyncio.Task[T]) -> None:
        self._broker = broker
        self.task = task

    def result(self) -> T:
        return self._broker.run(self._wait())

    async def _wait(self) -> T:
        return await self.task


class SimulatedBroker:
    """Metadata, partitions and handlers in virtual time, driven in bytes through the dispatcher."""

    is_apache_kafka = False

    def __init__(self, workers: Workers | None = None, **properties: str) -> None:
        self.simulation = Simulation(0)
        self.host = replace(self.simulation.host, workers=workers or self.simulation.host.workers)
        named = {name.replace("_", "."): value for name, value in properties.items()}
        self._config = BrokerConfig.from_properties(
            {"log.dirs": "/data", "auto.create.topics.enable": "false", **named}
        )
        self.client = ClientConnection("PLAINTEXT", "simulated")
        self._background: list[SimulatedPending[Any]] = []
        self.run(self._start())

    async def _start(self) -> None:
        self.node = Node(self._config, self.host)
        await self.node.start()
        await self.node.serve({"PLAINTEXT": Endpoint("simulated", 9092)})

    @property
    def services(self) -> Services:
        return self.node.compose_serving().dispatcher._services

    def partition(self, topic: str, index: int = 0) -> Partition:
        found = self.services.partitions.find(topic, index)
        assert found is not None
        return found

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.simulation.loop.run_until_complete(coroutine)

    def step(self, times: int = 10) -> None:
        """Let everything that can run do so, without time going on."""

        async def pause() -> None:
            for _ in range(times):
                await asyncio.sleep(0)

        self.run(pause())

    def restart(self) -> None:
        async def again() -> None:
            self.node.release_waiting_requests()
            await self.node.stop()
            await self._start()

        self.run(again())

    def kill(self) -> None:
        """The process dies, the operating system lives on."""
        self._cancel_all()
        self.simulation.loop._scheduled.clear()  # type: ignore[attr-defined]  # asyncio has no other way to forget timers
        self.simulation.disk.kill()
        self.run(self._start())

    def handle(self, request: Request, version: int) -> Any:
        """What the dispatcher gives back at once: an answer, or something to wait for."""
        return self.node.compose_serving().dispatcher.handle(
            memoryview(bytearray(encode_request(request, version)[4:])), self.client
        )

    def call(self, request: Request, response: type[AnyResponse], version: int | None = None) -> AnyResponse:
        return self.run(self._call(request, response, version))

    async def _call(self, request: Request, response: type[AnyResponse], version: int | None = None) -> AnyResponse:
        chosen = type(request).versions[1] if version is None else version
        answer = self.handle(request, chosen)
        if not isinstance(answer, list):
            answer = await answer
        return decode_response(response, joined(answer), chosen)

    def begin(
        self, request: Request, response: type[AnyResponse], version: int | None = None
    ) -> SimulatedPending[AnyResponse]:
        pending = SimulatedPending(self, self.simulation.loop.create_task(self._call(request, response, version)))
        self.step()
        return pending

    def send(self, request: Request, version: int) -> None:
        async def exchange() -> None:
            answer = self.handle(request, version)
            if answer is not None:
                assert await answer is None

        self.run(exchange())

    def elapsed_ms(self) -> float:
        return self.simulation.loop.time() * 1000

    def settle(self, condition: Callable[[], bool]) -> None:
        assert condition()

    def close(self) -> None:
        self._cancel_all()
        self.simulation.close()

    def _cancel_all(self) -> None:
        """Also what the last steps of others have just begun."""
        while tasks := asyncio.all_tasks(self.simulation.loop):
            for task in tasks:
                task.cancel()
            self.step()


def joined(answer: Answer) -> bytes:
    """The frame of an answer without its size."""
    assert answer is not None, "the request has no answer"
    data = b"".join(part if isinstance(part, bytes | bytearray) else _bytes_of(part) for part in answer)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    return data[4:]


def _bytes_of(part: Any) -> bytes:
    return bytes(part) if isinstance(part, memoryview) else part.read()


class WirePending(Generic[AnyResponse]):
    def __init__(self, wire: WireClient, response: type[AnyResponse], version: int) -> None:
        self._wire = wire
        self._response = response
        self._version = version

    def result(self) -> AnyResponse:
        with self._wire as wire:
            frame = wire.read_frame()
        if frame is None:
            raise CloseConnection("closed by the broker")
        return decode_response(self._response, frame, self._version)


class ApacheKafkaBroker:
    """A connection for each request: what is asked twice at once does not wait for each other."""

    is_apache_kafka = True

    def __init__(self, address: str) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)

    def call(self, request: Request, response: type[AnyResponse], version: int | None = None) -> AnyResponse:
        return self.begin(request, response, version).result()

    def begin(
        self, request: Request, response: type[AnyResponse], version: int | None = None
    ) -> WirePending[AnyResponse]:
        chosen = type(request).versions[1] if version is None else version
        wire = WireClient(self._port, self._host)
        wire.send(encode_request(request, chosen))
        return WirePending(wire, response, chosen)

    def send(self, request: Request, version: int) -> None:
        from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

        with WireClient(self._port, self._host) as wire:
            wire.send(encode_request(request, version))
            try:
                wire.call(ApiVersionsRequest(), ApiVersionsResponse, 0)
            except AssertionError as error:
                raise CloseConnection(str(error)) from error

    def elapsed_ms(self) -> float:
        return time.monotonic() * 1000

    def settle(self, condition: Callable[[], bool]) -> None:
        eventually(condition, "what Apache Kafka's metadata says", seconds=SETTLING_SECONDS)
