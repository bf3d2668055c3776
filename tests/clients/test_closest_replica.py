"""Consumers read from the replica in their rack (KIP-392): librdkafka, the Java client, and requests on the wire."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.testing import RunningBroker, zookeeper
from tests.jvm.tools import run_tool
from tests.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from odradek.protocol.messages.fetch import PartitionData

WAIT_S = 60
LEADER, FOLLOWER = 1, 2
RACKS = {LEADER: "rack-a", FOLLOWER: "rack-b"}
TOPIC = "near"
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
COUNT = 200


class Cluster:
    def __init__(self, brokers: dict[int, RunningBroker]) -> None:
        self.brokers = brokers
        self.bootstrap_servers = ",".join(broker.bootstrap_servers for broker in brokers.values())
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, 1, replica_assignment=[[LEADER, FOLLOWER]])])[TOPIC].result(WAIT_S)
        self.produce(COUNT)

    def produce(self, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, "acks": "all"})
        for _ in range(count):
            producer.produce(TOPIC, b"value")
        assert producer.flush(WAIT_S) == 0

    def fetch(
        self, node_id: int, offset: int, *, rack: str = "", epoch: int = 0, max_wait_ms: int = 0
    ) -> PartitionData:
        wanted = FetchPartition(
            partition=0, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=1 << 20
        )
        topic = FetchTopic(topic=TOPIC, partitions=[wanted])
        request = FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 20, rack_id=rack, topics=[topic])
        with WireClient(self.brokers[node_id].port) as client:
            return client.call(request, FetchResponse, 12).responses[0].partitions[0]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ExitStack() as resources:
        server = resources.enter_context(zookeeper())
        brokers = {}
        for node_id, rack in RACKS.items():
            properties: dict[str, str | int] = {
                "zookeeper.connect": f"{server.connect}/near",
                "node.id": node_id,
                "broker.rack": rack,
                "replica.selector.class": SELECTOR,
                "offsets.topic.replication.factor": 1,
            }
            brokers[node_id] = RunningBroker(properties)
            resources.callback(brokers[node_id].close)
            brokers[node_id].start()
        yield Cluster(brokers)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("rack", "expected"), [("rack-b", FOLLOWER), ("rack-a", LEADER), ("rack-c", LEADER)])
def test_librdkafka_reads_from_its_rack(cluster: Cluster, rack: str, expected: int) -> None:
    sources: list[int] = []

    def note(statistics: str) -> None:
        partitions = json.loads(statistics)["topics"].get(TOPIC, {}).get("partitions", {})
        sources.append(partitions.get("0", {}).get("broker", -1))

    settings: dict[str, Any] = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": "none",
        "client.rack": rack,
        "statistics.interval.ms": 100,
        "stats_cb": note,
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    offsets: list[int] = []
    deadline = time.monotonic() + WAIT_S

    def poll() -> None:
        assert time.monotonic() < deadline, (offsets[-1:], sources[-1:])
        record = consumer.poll(0.1)
        if record is not None and record.error() is None:
            offsets.append(record.offset() or 0)

    while len(offsets) < COUNT or sources[-1:] != [expected]:
        poll()
    cluster.produce(10)
    _, end_offset = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), WAIT_S)
    while len(offsets) < end_offset:
        poll()
    consumer.close()
    assert offsets == list(range(end_offset))


@pytest.mark.more
@pytest.mark.jvm
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("rack", "expected"), [("rack-b", FOLLOWER), ("rack-a", -1)])
def test_the_java_client_reads_from_its_rack(
    cluster: Cluster, jvm: None, tmp_path: Path, rack: str, expected: int
) -> None:
    config = tmp_path / "consumer.properties"
    config.write_text(f"client.rack={rack}\n")
    answer = run_tool(
        "kafka-consumer-perf-test", "--bootstrap-server", cluster.bootstrap_servers, "--topic", TOPIC,
        "--num-records", str(COUNT), "--command-config", str(config), "--print-metrics",
        "--timeout", "60000", timeout_seconds=120,
    )  # fmt: skip
    (line,) = [line for line in answer.checked().splitlines() if ":preferred-read-replica:" in line]
    assert int(float(line.rpartition(":")[2])) == expected


@pytest.mark.timeout(300)
def test_a_leader_names_the_replica_in_the_clients_rack(cluster: Cluster) -> None:
    named = cluster.fetch(LEADER, 0, rack="rack-b")
    assert (named.error_code, named.preferred_read_replica, bytes(named.records or b"")) == (0, FOLLOWER, b"")  # type: ignore[arg-type]  # no slice
    own = cluster.fetch(LEADER, 0, rack="rack-a")
    assert own.preferred_read_replica == -1
    assert own.records


@pytest.mark.timeout(300)
def test_a_follower_serves_what_is_committed_and_judges_no_offset(cluster: Cluster) -> None:
    assert cluster.fetch(FOLLOWER, 0, max_wait_ms=10_000).records
    assert cluster.fetch(FOLLOWER, 0, rack="rack-b", epoch=-1).records
    beyond = 1_000_000
    assert cluster.fetch(LEADER, beyond).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert cluster.fetch(FOLLOWER, beyond).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert cluster.fetch(FOLLOWER, 0, epoch=7).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert cluster.fetch(FOLLOWER, 0, epoch=-1).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
