"""librdkafka's consumer at both isolation levels, over a real socket. The transactions are written directly into the
partition of a broker in this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from odradek.replica.partition import Partition
from tests.replica.transactions import abort, commit, put
from tests.server.broker_in_this_process import BrokerInThisProcess

TOPIC = "transactions"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerInThisProcess]:
    running = BrokerInThisProcess(tmp_path, log_index_interval_bytes="0")
    admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
    yield running
    running.close()


@pytest.fixture(params=["read_committed", "read_uncommitted"])
def consumer(broker: BrokerInThisProcess, request: pytest.FixtureRequest) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "readers",
            "isolation.level": request.param,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": 700,  # several fetches
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    yield consumer
    consumer.close()


def read(consumer: Consumer, count: int) -> list[bytes]:
    messages = consumer.consume(count, timeout=30)
    assert [message.error() for message in messages] == [None] * len(messages)
    return [message.value() or b"" for message in messages]


def test_a_consumer_reads_what_its_isolation_level_allows(
    broker: BrokerInThisProcess, consumer: Consumer, request: pytest.FixtureRequest
) -> None:
    is_committed_only = "read_committed]" in request.node.name

    def write(partition: Partition) -> None:
        for number in range(20):
            put(partition, 1, b"aborted %d" % number, b"x" * 50)
            put(partition, 2, b"committed %d" % number)
            abort(partition, 1)
            commit(partition, 2)
            if number % 7 == 6:
                partition.log.roll()
        put(partition, 3, b"open")
        put(partition, 2, b"behind it")
        commit(partition, 2)

    def end_it(partition: Partition) -> None:
        abort(partition, 3)

    broker.write(TOPIC, write)
    committed = [b"committed %d" % number for number in range(20)]
    if is_committed_only:
        assert read(consumer, 20) == committed
        assert consumer.consume(1, timeout=1) == []
        broker.write(TOPIC, end_it)
        assert read(consumer, 1) == [b"behind it"]
    else:
        everything = [each for number in range(20) for each in (b"aborted %d" % number, b"x" * 50, committed[number])]
        assert read(consumer, 62) == [*everything, b"open", b"behind it"]
    _, high = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=30)
    assert high == (104 if is_committed_only else 103)
