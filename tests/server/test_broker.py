"""The order of start and stop, in one process: who is let in when, and what is left when it ends."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.controller.requests import CreateTopics
from odradek.host.host import real_host
from odradek.host.network import CannotListen, run_on_fast_loop
from odradek.host.workers import DirectoryWorkers, Workers
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.server import broker as broker_module
from odradek.server import serving
from odradek.server.broker import Broker
from tests.server.requests import VERSION, fetch_request
from tests.wire import decode_response, encode_request

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

PATIENCE_SECONDS = 20.0


class PatientWorkers:
    """Holds one piece of work back until it is released."""

    def __init__(self, workers: Workers, held: str) -> None:
        self._workers = workers
        self._held = held
        self.has_come = asyncio.Event()
        self.may_go_on = asyncio.Event()

    async def run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        if function.__name__ == self._held:
            self.has_come.set()
            await self.may_go_on.wait()
        return await self._workers.run(function, *args)

    def for_directory(self, path: str) -> DirectoryWorkers:
        return self._workers.for_directory(path)

    def close(self) -> None:
        self._workers.close()


def config(tmp_path: Path, **properties: str) -> BrokerConfig:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return BrokerConfig.from_properties(
        {"log.dirs": f"{tmp_path}/data", "listeners": "PLAINTEXT://127.0.0.1:0", **named}
    )


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scenario(), PATIENCE_SECONDS)

    run_on_fast_loop(bounded)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what is waited for happens outside of this test
        await asyncio.sleep(0)


async def ask(port: int, request: Any, response: Any, version: int) -> Any:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(encode_request(request, version))
    size = int.from_bytes(await reader.readexactly(4), "big")
    frame = await reader.readexactly(size)
    writer.close()
    await writer.wait_closed()
    return decode_response(response, frame, version)


def test_connections_are_accepted_after_the_broker_knows_its_address(tmp_path: Path) -> None:
    """A client that comes during a restart must not get metadata of a cluster without brokers."""

    async def scenario() -> None:
        host = real_host()
        workers = PatientWorkers(host.workers, "machine_name")
        broker = Broker(config(tmp_path, listeners="PLAINTEXT://:0"), replace(host, workers=workers))
        starting = asyncio.ensure_future(broker.start())
        await workers.has_come.wait()
        port = broker._listeners[0].port
        refused: Exception | None = None
        try:
            await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError as problem:
            refused = problem
        workers.may_go_on.set()
        await starting
        answer = await ask(port, MetadataRequest(topics=[]), MetadataResponse, 12)
        await broker.stop()
        assert refused is not None
        assert [each.port for each in answer.brokers] == [port]

    run(scenario)


def test_a_client_that_never_reads_does_not_keep_a_broker_from_stopping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "DRAIN_TIMEOUT_S", 0.2)

    async def scenario() -> None:
        broker = Broker(config(tmp_path, socket_send_buffer_bytes="8192"), real_host())
        await broker.start()
        listener = broker._listeners[0]
        questions = encode_request(MetadataRequest(topics=None), 12) * 1000
        with socket.create_connection(("127.0.0.1", listener.port)) as deaf:
            deaf.setblocking(False)
            await until(lambda: bool(listener._connections))
            (connection,) = listener._connections
            sent = stuck = 0
            while stuck < 100:  # neither side can go on
                try:
                    sent += deaf.send(questions[sent % len(questions) :])
                    stuck = 0
                except BlockingIOError:
                    stuck += not connection._writer.is_drained
                await asyncio.sleep(0)
            began = asyncio.get_running_loop().time()
            await broker.stop()
            assert 0.1 < asyncio.get_running_loop().time() - began < 5

    run(scenario)
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_of_two_that_take_an_address_at_once_one_is_reported(tmp_path: Path) -> None:
    """Both have bound it before either listens; the one who is late leaves its data as it was."""

    async def scenario() -> None:
        host = real_host()
        workers = PatientWorkers(host.workers, "_open_directories")
        late = Broker(config(tmp_path), replace(host, workers=workers))
        starting = asyncio.ensure_future(late.start())
        await workers.has_come.wait()
        port = late._listeners[0].port
        prompt = Broker(config(tmp_path / "prompt", listeners=f"PLAINTEXT://127.0.0.1:{port}"), real_host())
        await prompt.start()
        workers.may_go_on.set()
        (outcome,) = await asyncio.gather(starting, return_exceptions=True)
        await prompt.stop()
        assert isinstance(outcome, CannotListen)
        assert f"127.0.0.1:{port}: the port is in use" in str(outcome)

    run(scenario)
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_waiters_go_with_their_clients(tmp_path: Path) -> None:
    async def scenario() -> None:
        broker = Broker(config(tmp_path, auto_create_topics_enable="true"), real_host())
        await broker.start()
        port = broker._listeners[0].port
        await ask(port, MetadataRequest(topics=None), MetadataResponse, 12)
        from odradek.controller.decisions.topics import NewTopic

        await broker._node._channel.ask(CreateTopics([NewTopic(name="t", partition_count=2)]))
        partition = broker._node._table.find("t", 0)
        assert partition is not None
        for _ in range(3):
            clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
            for _, writer in clients:
                writer.write(encode_request(fetch_request("t", max_wait_ms=60_000), VERSION))
            await until(lambda: len(partition.waiting_fetches) == 30)
            for _, writer in clients:
                writer.close()
                await writer.wait_closed()
            await until(lambda: not partition.waiting_fetches)
        assert not broker._listeners[0]._connections
        limits = broker._listeners[0]._limits
        assert not limits._total
        assert not limits._by_host
        await broker.stop()

    run(scenario)


def failing_composition(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One for each time that the broker tried."""
    attempts: list[None] = []

    def fail(*_: object) -> None:
        attempts.append(None)
        raise ImportError("no such module")

    monkeypatch.setattr(serving, "Dispatcher", fail)
    return attempts


async def failure_of(broker: Broker) -> str:
    failure = await broker.wait_for_failure()
    for _ in range(2):  # one for each later client
        with pytest.raises(RuntimeError, match="no such module"):
            broker._node.compose_serving()
    await broker._node.collection.collect()
    await broker.stop()
    return failure


def test_a_broker_that_cannot_compose_what_requests_need_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    attempts = failing_composition(monkeypatch)

    async def scenario() -> None:
        broker = Broker(config(tmp_path), real_host())
        await broker.start()
        assert "no such module" in await failure_of(broker)

    run(scenario)
    assert len(attempts) == 1
    assert [record.getMessage() for record in caplog.records].count("requests cannot be served") == 1


def test_a_client_before_the_composition_fails_finds_it_failed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = failing_composition(monkeypatch)

    async def scenario() -> None:
        broker = Broker(config(tmp_path), real_host())
        await broker.start()
        with pytest.raises(ImportError):
            broker._node.compose_serving()
        assert "no such module" in await failure_of(broker)

    run(scenario)
    assert len(attempts) == 1


def test_a_module_that_cannot_be_loaded_after_the_start_stops_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "LOADED_WHEN_READY", ("odradek.no_such_module",))

    async def scenario() -> None:
        broker = Broker(config(tmp_path), real_host())
        await broker.start()
        assert "odradek.no_such_module" in await broker.wait_for_failure()
        await broker.stop()

    run(scenario)


def test_a_broker_composes_what_requests_need_without_a_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_module, "LOADING_PAUSE_S", 3600.0)

    async def scenario() -> None:
        broker = Broker(config(tmp_path), real_host())
        await broker.start()
        await until(lambda: broker._node._serving is not None)
        await broker.stop()

    run(scenario)


def test_metrics_are_composed_before_they_are_refreshed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_module, "LOADED_WHEN_READY", ())

    async def scenario() -> None:
        broker = Broker(config(tmp_path), real_host())
        await broker.start()
        node = broker._node
        is_composed: list[bool] = []

        async def refresh() -> None:
            is_composed.append(node._serving is not None)

        node.collection._refreshes.insert(0, refresh)
        await node.collection.collect()
        await broker.stop()
        assert is_composed == [True]

    run(scenario)


def test_metrics_of_a_stopping_broker_start_no_coordinators(tmp_path: Path) -> None:
    async def scenario() -> None:
        broker = Broker(config(tmp_path), real_host())
        await broker.start()
        assert broker._loading is not None
        broker._loading.cancel()
        broker._monitoring.stopping()
        await broker._node.collection.collect()
        is_composed = broker._node._serving is not None
        await broker.stop()
        assert not is_composed

    run(scenario)
