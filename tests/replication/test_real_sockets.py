"""Replication between two brokers in one process, over real sockets and on a real disk: large responses are appended
where they were received, also while other connections receive into the same buffers."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from odradek.client.broker_address import BrokerAddress
from odradek.client.broker_clients import BrokerClients
from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.listeners import Endpoint
from odradek.controller.decisions.in_sync_sets import InSyncProposal, InSyncResult
from odradek.handlers.api import AdvertisedApis
from odradek.handlers.context import Services
from odradek.handlers.dispatch import Dispatcher
from odradek.handlers.fetch_sessions import FetchSessions
from odradek.handlers.produce_conversions import ProduceConversions
from odradek.handlers.quota_enforcement import QuotaEnforcement
from odradek.handlers.registry import build_registry
from odradek.host.host import real_host
from odradek.host.network import ShortAnswers, run_on_fast_loop
from odradek.host.receive_budget import ReceiveBudget
from odradek.log.log_directory import LogDirectory
from odradek.metadata.changes import BrokerRegistered, TopicCreated
from odradek.metadata.entities import BrokerImage, PartitionImage, TopicImage
from odradek.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from odradek.replica.partition import Partition
from odradek.replica.partition_table import PartitionTable
from odradek.replica.replication import Replication
from odradek.security.authorizer import AllowAll
from odradek.server.connection_limits import ConnectionLimits
from odradek.server.listener import Listener
from tests.handlers.requests import batch
from tests.replication.invariants import stored_batches

TOPIC = "t"
PARTITIONS = 3
BATCHES, VALUE_BYTES = 60, 150_000
TIMEOUT_S = 120


class RealBroker:
    """Partitions, handlers and replication of one broker, with the metadata that the test gives it."""

    def __init__(self, node_id: int, path: Path) -> None:
        self.node_id = node_id
        self.host = real_host()
        self.config = BrokerConfig.from_properties({"node.id": str(node_id), "log.dirs": str(path)})
        self.clients = BrokerClients(self.host, f"broker-{node_id}")
        self.replication = Replication(node_id, self.clients, self, lambda: self.config, self.host.clock)
        directory = LogDirectory.open(str(path), self.host, cluster_id="c", node_id=node_id)
        self.table = PartitionTable(
            self.host, node_id, [directory], lambda: self.config, self._fail, self._run_in_order, self.replication
        )
        self.image = MetadataImage(version=0, cluster_id="c", controller_id=0)
        self.broker_config = self.config

    async def listen(self) -> int:
        apis = build_registry()
        unused = cast("Any", None)
        services = Services(
            host=self.host,
            metadata=cast("Any", self),
            controller=unused,
            partitions=self.table,
            fetch_sessions=FetchSessions(10, self.host.clock, self.host.entropy),
            producer_ids=unused,
            groups=unused,
            transactions=unused,
            authorizer=AllowAll(),
            quotas=QuotaEnforcement(self.config, self.host.clock),
            advertised_apis=AdvertisedApis(apis.values()),
            produce_conversions=ProduceConversions(self.host.workers, ReceiveBudget()),
        )
        self._listener = Listener(
            "PLAINTEXT",
            self.host.clock,
            ConnectionLimits(),
            ShortAnswers(),
            ReceiveBudget(),
            largest_frame_bytes=self.config.socket_request_max_bytes,
            idle_limit_ms=0,
        )
        await self._listener.bind("127.0.0.1", 0, backlog=10, send_buffer_bytes=None, receive_buffer_bytes=None)
        dispatcher = Dispatcher(apis, services)
        await self._listener.serve(lambda: dispatcher, lambda: self.config)
        return self._listener.port

    async def start(self, image: MetadataImage) -> None:
        await self.table.load(self.image)
        await self.table.lead_from(self.node_id + 1)
        self.replication.start(self.table, self.image, self.node_id + 1)
        await self.apply(image)

    async def apply(self, image: MetadataImage) -> None:
        before, self.image = self.image, image
        await self.table.follow(before, image)
        self.replication.follow(before, image)

    def partition(self, index: int) -> Partition:
        found = self.table.find(TOPIC, index)
        assert found is not None
        return found

    async def propose(self, proposals: Sequence[InSyncProposal]) -> list[InSyncResult]:
        raise OSError("there is no controller")

    async def stop(self) -> None:
        self.replication.stop()
        self.clients.close()
        self._listener.finish()
        await self._listener.close(1)
        await self.table.close()
        self.host.workers.close()

    def _fail(self, directory: LogDirectory) -> None:
        raise AssertionError(directory.failure)

    async def _run_in_order(self, job: Callable[[], Any]) -> None:
        await job()


def metadata(ports: Sequence[int], leader: int, epoch: int) -> MetadataImage:
    image = MetadataImage(version=0, cluster_id="c", controller_id=0)
    brokers = [
        BrokerRegistered(BrokerImage(node_id, {"PLAINTEXT": Endpoint("127.0.0.1", port)}, broker_epoch=node_id + 1))
        for node_id, port in enumerate(ports)
    ]
    partitions = tuple(PartitionImage(index, (0, 1), (0, 1), leader, epoch, epoch) for index in range(PARTITIONS))
    return image.apply_all([*brokers, TopicCreated(TopicImage(TOPIC, UUID(int=9), partitions, is_internal=False))])


async def committed(partition: Partition, offset: int) -> None:
    """Until the high watermark has reached the offset."""
    reached = asyncio.Event()
    unsubscribe = partition.on_high_watermark(lambda new: reached.set() if new >= offset else None)
    try:
        if partition.high_watermark < offset:
            await asyncio.wait_for(reached.wait(), TIMEOUT_S)
    finally:
        unsubscribe()


async def story(path: Path) -> None:
    brokers = [RealBroker(node_id, path / str(node_id)) for node_id in (0, 1)]
    ports = [await broker.listen() for broker in brokers]
    for broker in brokers:
        await broker.start(metadata(ports, 0, 0))
    for leader, other in ((0, 1), (1, 0)):
        if leader:
            for broker in brokers:
                await broker.apply(metadata(ports, leader, 1))
        ends = []
        for number in range(BATCHES):
            led = brokers[leader].partition(number % PARTITIONS)
            result = led.append(memoryview(batch(bytes([number]) * VALUE_BYTES)), 1)
            assert result.error is ErrorCode.NONE
            ends.append((led, result.last_offset + 1))
        for led, end in ends[-PARTITIONS:]:
            await committed(led, end)
            follower = brokers[other].partition(led.index)
            assert list(stored_batches(follower, 0, end)) == list(stored_batches(led, 0, end))
    for broker in brokers:
        await broker.stop()


def test_large_responses_over_real_sockets(tmp_path: Path) -> None:
    run_on_fast_loop(lambda: story(tmp_path))


async def interruption_story(path: Path) -> None:
    broker = RealBroker(0, path / "0")
    port = await broker.listen()
    await broker.start(metadata([port], 0, 0))
    client = broker.clients.to(BrokerAddress(0, 1, "127.0.0.1", port), "test")
    position = FetchPartition(partition=0, current_leader_epoch=0, fetch_offset=0, partition_max_bytes=1000)
    request = FetchRequest(
        replica_state=ReplicaState(replica_id=1, replica_epoch=2),
        max_wait_ms=10 * TIMEOUT_S * 1000,
        min_bytes=1,
        topics=[FetchTopic(topic_id=UUID(int=9), partitions=[position])],
    )
    fetching = asyncio.ensure_future(client.call(request, FetchResponse, timeout_ms=TIMEOUT_S * 1000))
    await asyncio.sleep(0)  # it is sent first
    await client.call(ApiVersionsRequest(), ApiVersionsResponse, timeout_ms=TIMEOUT_S * 1000, version=0)
    assert (await fetching).responses[0].partitions[0].error_code == ErrorCode.NONE
    await broker.stop()


def test_a_fetch_that_waits_is_answered_when_the_follower_sends_another_request(tmp_path: Path) -> None:
    run_on_fast_loop(lambda: interruption_story(tmp_path))
