"""Data directories that earlier versions wrote are opened and served.

Each archive in `previous_versions` holds two log directories of one broker that was stopped or killed: topics `orders`
(3 partitions of 100 records, compressed, from an idempotent producer), `table` (compacted, 20 records), a deleted
topic, a dynamic setting of the broker, and committed offsets of group `billing`.
"""

import tarfile
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]  # the stubs lack it

from tests.server.process import broker_process

ARCHIVES = sorted(Path(__file__).with_name("previous_versions").glob("*.tar.gz"))
TIMEOUT_SECONDS = 60.0


def read_all(address: str, topic: str, partition: int) -> list[tuple[bytes | None, bytes | None]]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    records = []
    while (message := consumer.poll(TIMEOUT_SECONDS)) is not None and message.error() is None:
        records.append((message.key(), message.value()))
    consumer.close()
    assert message is not None, "the end of the partition was not reached"
    return records


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.gz"))
def test_data_of_an_earlier_version_is_served(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    directories = f"{tmp_path}/a,{tmp_path}/b"
    for _ in range(2):  # as found, and once more after this version has written to it
        with broker_process(listeners="PLAINTEXT://127.0.0.1:0", log_dirs=directories) as broker:
            ((host, port),) = broker.wait_until_ready()
            check_content(f"{host}:{port}")
            broker.process.terminate()
            assert broker.wait() == 0


def check_content(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    topics = admin.list_topics(timeout=TIMEOUT_SECONDS).topics
    assert {name: len(topic.partitions) for name, topic in topics.items()} == {
        "orders": 3,
        "table": 1,
        "__consumer_offsets": 3,
    }
    for partition in range(3):
        expected = [
            (f"k{number % 7}".encode(), f"order {number} ".encode() + b"x" * 20_000)
            for number in range(partition, 300, 3)
        ]
        assert read_all(address, "orders", partition)[:100] == expected
    assert read_all(address, "table", 0)[:20] == [
        (f"k{number % 5}".encode(), f"v{number}".encode()) for number in range(20)
    ]
    assert committed_offsets(admin) == {("orders", 0): 10, ("orders", 1): 20, ("orders", 2): 30}
    assert setting(admin, ConfigResource.Type.TOPIC, "orders", "retention.ms") == "-1"
    assert setting(admin, ConfigResource.Type.BROKER, "0", "log.retention.ms") == "604800001"
    producer = Producer({"bootstrap.servers": address})
    producer.produce("orders", value=b"new", partition=0)
    assert producer.flush(TIMEOUT_SECONDS) == 0
    assert read_all(address, "orders", 0)[-1] == (None, b"new")


def committed_offsets(admin: AdminClient) -> dict[tuple[str, int], int]:
    futures = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("billing")])
    offsets = futures["billing"].result(TIMEOUT_SECONDS).topic_partitions
    return {(each.topic, each.partition): each.offset for each in offsets}


def setting(admin: AdminClient, kind: ResourceType, resource: str, name: str) -> str:
    (future,) = admin.describe_configs([ConfigResource(kind, resource)]).values()
    value: str = future.result(TIMEOUT_SECONDS)[name].value
    return value
