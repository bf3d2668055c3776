"""A compacted topic of a real broker with real clients: the latest value of every key, through restarts and kills, in
files that Apache Kafka's tools find nothing wrong with. Groups find their offsets when their topic was compacted."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from odradek.cli.log.verify import check_target, find_target
from odradek.log.checkpoints import decode_checkpoint
from odradek.testing import RunningBroker, broker
from tests.clients.test_kafka_tools import dump
from tests.jvm.tools import ToolSession
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(240)

PROPERTIES = {
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "offsets.topic.num.partitions": "1",
    # A segment has room for three index entries, so it is full after some kilobytes.
    "log.index.size.max.bytes": "24",
    "log.index.interval.bytes": "500",
    "log.flush.offset.checkpoint.interval.ms": "500",
}
KEYS, ROUNDS = 50, 16


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker(**PROPERTIES) as running:
        yield running


def make_topic(running: RunningBroker, name: str) -> Path:
    admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
    admin.create_topics([NewTopic(name, 1, 1, config={"cleanup.policy": "compact"})])[name].result(30)
    return Path(running.data_directory) / f"{name}-0"


def write(running: RunningBroker, topic: str, first: int, codec: str) -> dict[bytes, bytes]:
    """Every key in every round, but for the first keys: they are deleted halfway."""
    producer = Producer(
        {"bootstrap.servers": running.bootstrap_servers, "enable.idempotence": True, "compression.type": codec}
    )
    for number in range(first, first + ROUNDS):
        for key in range(0 if number <= first + ROUNDS // 2 else 5, KEYS):
            is_deleted = number == first + ROUNDS // 2 and key < 5
            value = None if is_deleted else b"%d-%d" % (number, key)
            producer.produce(topic, key=b"key-%d" % key, value=value)
        assert producer.flush(60) == 0
    return {b"key-%d" % key: b"%d-%d" % (first + ROUNDS - 1, key) for key in range(5, KEYS)}


def read(running: RunningBroker, topic: str) -> tuple[dict[bytes, bytes], int]:
    """What a reader makes of it from the beginning, and how many records that took."""
    consumer = Consumer(
        {"bootstrap.servers": running.bootstrap_servers, "group.id": "unused", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    table: dict[bytes, bytes] = {}
    count, last_offset = 0, -1
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            break
        offset, key, value = message.offset(), message.key(), message.value()
        assert offset is not None
        assert offset > last_offset
        assert key is not None
        last_offset = offset
        count += 1
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
    consumer.close()
    return table, count


def clean_offset(running: RunningBroker, topic: str) -> int:
    try:
        data = (Path(running.data_directory) / "cleaner-offset-checkpoint").read_bytes()
    except FileNotFoundError:
        return 0
    return decode_checkpoint(data).get((topic, 0), 0)


def is_clean(running: RunningBroker, end_offset: int) -> bool:
    return clean_offset(running, "compacted") >= end_offset


@pytest.mark.more
@pytest.mark.jvm
def test_readers_find_the_latest_values_and_kafkas_tools_nothing_wrong(running: RunningBroker, jvm: None) -> None:
    directory = make_topic(running, "compacted")
    for first, codec in ((0, "none"), (ROUNDS, "lz4")):
        expected = write(running, "compacted", first, codec)
        active = max(int(path.stem) for path in directory.glob("*.log"))
        eventually(partial(is_clean, running, active))
        table, count = read(running, "compacted")
        assert table == expected
        assert count < KEYS * ROUNDS // 2
    workers = psutil.Process(running.process.pid).children() if running.process else []
    assert len(workers) == 1
    running.kill()
    workers[0].wait(timeout=30)
    running.start()
    assert read(running, "compacted")[0] == expected
    running.stop()
    assert check_target(find_target(running.data_directory), is_live=False).all_findings == []
    with ToolSession() as tools:
        logs = sorted(directory.glob("*.log"))
        printed = dump(tools, logs, "--deep-iteration", "--print-data-log")
        assert "deleteHorizonMs: OptionalLong[" in printed
        closed = [log.with_suffix(suffix) for log in logs[:-1] for suffix in (".index", ".timeindex")]
        checked = dump(tools, closed, "--index-sanity-check")
        assert checked.count("passed sanity check") + checked.count("is empty") == len(closed)
        dump(tools, [*directory.glob("*.index"), *directory.glob("*.timeindex"), *directory.glob("*.snapshot")])
    running.start()


def test_groups_find_their_offsets_after_their_topic_was_compacted(running: RunningBroker) -> None:
    make_topic(running, "read")
    write(running, "read", 0, "none")
    settings = {"bootstrap.servers": running.bootstrap_servers, "enable.auto.commit": False}
    groups = [f"group-{number}" for number in range(5)]
    consumers = [Consumer({**settings, "group.id": name}) for name in groups]
    offsets = Path(running.data_directory) / "__consumer_offsets-0"
    for offset in range(60):
        for number, consumer in enumerate(consumers):
            consumer.commit(offsets=[TopicPartition("read", 0, offset + number)], asynchronous=False)
    for consumer in consumers:
        consumer.close()
    eventually(lambda: clean_offset(running, "__consumer_offsets") > 250)
    size_bytes = sum(path.stat().st_size for path in offsets.glob("*.log"))
    assert size_bytes < 20_000  # three times as much was written
    for restart in (running.kill, running.stop):
        restart()
        running.start()
        for number, name in enumerate(groups):
            consumer = Consumer({**settings, "bootstrap.servers": running.bootstrap_servers, "group.id": name})
            (committed,) = consumer.committed([TopicPartition("read", 0)], timeout=30)
            assert committed.offset == 59 + number
            consumer.close()
