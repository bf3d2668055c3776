"""A disk that hangs, under real threads: it delays the partitions of its own log directory and nothing else."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.listeners import Endpoint
from odradek.handlers.context import ClientConnection
from odradek.host.host import real_host
from odradek.host.real_disk import RealDisk, RealFile
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.schema import Request, Response
from odradek.replica import log_opening, log_opening_jobs, name_releases
from odradek.server.node import Node
from tests.handlers.brokers import joined
from tests.handlers.requests import BY_NAME, batch, produce_request
from tests.wire import decode_response, encode_request

AnyResponse = TypeVar("AnyResponse", bound="Response")

TIMEOUT_SECONDS = 20.0
PARTITIONS = range(16)


class HangingFile(RealFile):
    __slots__ = ("_may_sync",)

    def __init__(self, descriptor: int, may_sync: threading.Event) -> None:
        super().__init__(descriptor)
        self._may_sync = may_sync

    def sync(self) -> None:
        self._may_sync.wait()
        super().sync()


class HangingDisk(RealDisk):
    """A sync or replacement of files below `hung_path` blocks its thread until `may_sync` is set; with
    `hangs_creation`, so does the creation of directories."""

    def __init__(self, hung_path: str) -> None:
        super().__init__()
        self.hung_path = hung_path
        self.may_sync = threading.Event()
        self.may_sync.set()
        self.hangs_creation = False

    def make_directories(self, path: str) -> None:
        if self.hangs_creation and path.startswith(self.hung_path):
            self.may_sync.wait()
        super().make_directories(path)

    def open(self, path: str, *, create: bool = False) -> RealFile:
        file = super().open(path, create=create)
        if not path.startswith(self.hung_path):
            return file
        hanging = HangingFile(file._descriptor, self.may_sync)
        file._descriptor = -1  # the new file closes it
        return hanging

    def replace_file(self, path: str, data: bytes) -> None:
        if path.startswith(self.hung_path):
            self.may_sync.wait()
        super().replace_file(path, data)


class TwoDirectories:
    """A node with one log directory that can hang, driven through its dispatcher."""

    def __init__(self, tmp_path: Path) -> None:
        self.disk = HangingDisk(f"{tmp_path}/two")
        self.host = replace(real_host(), disk=self.disk)
        config = BrokerConfig.from_properties({"log.dirs": f"{tmp_path}/one,{tmp_path}/two"})
        self.node = Node(config, self.host)

    async def start(self) -> None:
        await self.node.start()
        await self.node.serve({"PLAINTEXT": Endpoint("localhost", 9092)})

    async def call(self, request: Request, response: type[AnyResponse], version: int) -> AnyResponse:
        frame = memoryview(bytearray(encode_request(request, version)[4:]))
        answer = self.node.compose_serving().dispatcher.handle(frame, ClientConnection("PLAINTEXT", "test"))
        if not isinstance(answer, list):
            assert answer is not None
            answer = await answer
        return decode_response(response, joined(answer), version)

    async def produce(self, topic: str, partition: int) -> int:
        request = produce_request([(topic, partition, batch())])
        request.timeout_ms = 120_000
        answer = await self.call(request, ProduceResponse, BY_NAME)
        return answer.responses[0].partition_responses[0].error_code

    async def create(self, topic: str, partitions: int, **configs: str) -> int:
        values = [CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
        wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1, configs=values)
        answer = await self.call(CreateTopicsRequest(topics=[wanted]), CreateTopicsResponse, 7)
        return answer.topics[0].error_code

    async def delete(self, topic: str) -> int:
        answer = await self.call(DeleteTopicsRequest(topic_names=[topic]), DeleteTopicsResponse, 3)
        return answer.responses[0].error_code

    async def look_up(self, topic: str, partition: int) -> int:
        """By time, which a worker does."""
        asked = ListOffsetsPartition(partition_index=partition, timestamp=1, current_leader_epoch=-1)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
        answer = await self.call(request, ListOffsetsResponse, 7)
        return answer.topics[0].partitions[0].error_code

    def partitions_in(self, directory: str, topic: str) -> list[int]:
        table = self.node.compose_serving().dispatcher._services.partitions
        return [each.index for each in table if each.topic == topic and each.directory.path.endswith(directory)]


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[TwoDirectories]:
    broker = TwoDirectories(tmp_path)
    await broker.start()
    yield broker
    broker.disk.may_sync.set()
    await broker.node.stop()
    broker.host.workers.close()


@pytest.mark.timeout(120)
async def test_hung_flushes_delay_only_partitions_of_their_own_directory(broker: TwoDirectories) -> None:
    assert await broker.create("flushed", len(PARTITIONS), flush_messages="1") == ErrorCode.NONE
    healthy, hung = broker.partitions_in("/one", "flushed"), broker.partitions_in("/two", "flushed")
    assert len(healthy) == len(hung) == len(PARTITIONS) // 2
    for partition in PARTITIONS:
        assert await broker.produce("flushed", partition) == ErrorCode.NONE
    broker.disk.may_sync.clear()
    waiting = [asyncio.ensure_future(broker.produce("flushed", partition)) for partition in hung]
    async with asyncio.timeout(TIMEOUT_SECONDS):
        for partition in healthy:
            assert await broker.produce("flushed", partition) == ErrorCode.NONE
        for partition in PARTITIONS:
            assert await broker.look_up("flushed", partition) == ErrorCode.NONE, "reads do not queue behind flushes"
        assert await broker.create("another", 1) == ErrorCode.NONE
        assert broker.partitions_in("/one", "another") == [0]
        assert await broker.produce("another", 0) == ErrorCode.NONE
    assert not any(each.done() for each in waiting)
    broker.disk.may_sync.set()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        assert await asyncio.gather(*waiting) == [ErrorCode.NONE] * len(hung)


@pytest.mark.timeout(120)
async def test_a_topic_on_a_hung_disk_is_deleted_without_delaying_other_metadata(broker: TwoDirectories) -> None:
    assert await broker.create("healthy", 1) == ErrorCode.NONE
    assert await broker.create("hung", 1, flush_messages="1") == ErrorCode.NONE
    assert broker.partitions_in("/two", "hung") == [0]
    broker.disk.may_sync.clear()
    producing = asyncio.ensure_future(broker.produce("hung", 0))
    await asyncio.sleep(0)
    async with asyncio.timeout(TIMEOUT_SECONDS):
        assert await broker.delete("hung") == ErrorCode.NONE
        assert await broker.create("another", 2) == ErrorCode.NONE
        assert await broker.delete("another") == ErrorCode.NONE
    broker.disk.may_sync.set()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        assert await producing == ErrorCode.NOT_LEADER_OR_FOLLOWER
        await broker.node.compose_serving().dispatcher._services.partitions.removals.settle()
        assert await broker.create("hung", 1) == ErrorCode.NONE


@pytest.mark.timeout(120)
async def test_a_topic_of_a_healthy_disk_is_created_again_while_another_disk_hangs(broker: TwoDirectories) -> None:
    assert await broker.create("healthy", 1) == ErrorCode.NONE
    assert await broker.create("hung", 1) == ErrorCode.NONE
    assert broker.partitions_in("/one", "healthy") == [0]
    broker.disk.may_sync.clear()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        assert await broker.delete("healthy") == ErrorCode.NONE
        assert await broker.create("healthy", 1) == ErrorCode.NONE


@pytest.fixture
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_opening_jobs, "OPENING_LIMIT_S", 0.5)
    monkeypatch.setattr(name_releases, "RELEASE_LIMIT_S", 0.5)


async def wait_until_online(broker: TwoDirectories, topic: str) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while await broker.produce(topic, 0) != ErrorCode.NONE:  # noqa: ASYNC110 - work of other threads
            await asyncio.sleep(0.05)  # a poll's pause


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("short_limits")
async def test_a_partition_on_a_hung_disk_is_created_without_delaying_other_metadata(
    broker: TwoDirectories, caplog: pytest.LogCaptureFixture
) -> None:
    assert await broker.create("healthy", 1) == ErrorCode.NONE
    broker.disk.hangs_creation = True
    broker.disk.may_sync.clear()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        assert await broker.create("hung", 1) == ErrorCode.NONE
        assert broker.partitions_in("/two", "hung") == [0]
        assert await broker.produce("hung", 0) == ErrorCode.KAFKA_STORAGE_ERROR
        assert await broker.create("another", 2) == ErrorCode.NONE
        assert broker.partitions_in("/one", "another") == [0, 1], "not in a directory that hangs"
        assert await broker.produce("another", 1) == ErrorCode.NONE
        assert await broker.produce("healthy", 0) == ErrorCode.NONE
    broker.disk.may_sync.set()
    await wait_until_online(broker, "hung")
    assert broker.partitions_in("/two", "hung") == [0]
    assert caplog.messages == ["a log directory does not respond: its new partitions are opened when it does"]
    caplog.clear()


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("short_limits")
async def test_a_topic_is_deleted_and_created_again_while_its_disk_hangs(
    broker: TwoDirectories, caplog: pytest.LogCaptureFixture
) -> None:
    assert await broker.create("healthy", 1) == ErrorCode.NONE
    broker.disk.hangs_creation = True
    broker.disk.may_sync.clear()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        assert await broker.create("hung", 1) == ErrorCode.NONE
        assert await broker.delete("hung") == ErrorCode.NONE
        assert await broker.create("hung", 1) == ErrorCode.NONE
        assert await broker.produce("hung", 0) == ErrorCode.KAFKA_STORAGE_ERROR
        assert await broker.create("another", 1) == ErrorCode.NONE
        assert await broker.produce("another", 0) == ErrorCode.NONE
    broker.disk.may_sync.set()
    table = broker.node.compose_serving().dispatcher._services.partitions
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await table.removals.settle()
        await table.open_missing()
    await wait_until_online(broker, "hung")
    assert [each.topic for each in table if each.topic == "hung"] == ["hung"]
    assert all("a log directory does not respond" in each for each in caplog.messages)
    caplog.clear()


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("short_limits")
async def test_many_logs_that_are_opened_one_after_the_other_are_not_a_hung_disk(
    broker: TwoDirectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = log_opening._open_log

    def open_slowly(*arguments: Any) -> Any:
        time.sleep(0.1)  # a measured time
        return real(*arguments)

    monkeypatch.setattr(log_opening, "_open_log", open_slowly)
    async with asyncio.timeout(TIMEOUT_SECONDS):
        assert await broker.create("large", 40) == ErrorCode.NONE
        for partition in (0, 39):
            assert await broker.produce("large", partition) == ErrorCode.NONE
