"""Retention with a real broker, real files and a real client: old records go, and a consumer that is behind goes on."""

import os
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from odradek.testing import RunningBroker, broker
from tests.waiting import eventually

PATIENCE_S = 60.0
HOUR_MS = 3_600_000
WEEK_HOURS = 7 * 24
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NO_TIMESTAMP = -1


def start_offset(running: RunningBroker, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": running.bootstrap_servers, "group.id": "watcher"})
    try:
        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    finally:
        consumer.close()
    return int(low)


def test_a_consumer_that_is_behind_goes_on_at_the_new_start() -> None:
    properties = {"log.retention.check.interval.ms": 200, "log.retention.hours": 1, "log.segment.delete.delay.ms": 0}
    with broker(properties) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        admin.create_topics([NewTopic("topic", 1, config={"segment.ms": "1000"})])["topic"].result(30)
        producer = Producer({"bootstrap.servers": running.bootstrap_servers, "linger.ms": 0})
        now_ms = int(time.time() * 1000)
        for age_h, value in ((3, b"oldest"), (2, b"old"), (0, b"new")):
            producer.produce("topic", value, partition=0, timestamp=now_ms - age_h * HOUR_MS)
            producer.flush(30)
        _await_start_offset(running, "topic", 2)
        consumer = Consumer(
            {"bootstrap.servers": running.bootstrap_servers, "group.id": "behind", "auto.offset.reset": "earliest"}
        )
        consumer.assign([TopicPartition("topic", 0, 0)])
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert (message.error(), message.offset(), message.value()) == (None, 2, b"new")
        consumer.close()
        directory = Path(running.data_directory, "topic-0")
        eventually(lambda: len(list(directory.glob("*.log*"))) <= 1, "files of old records are deleted")
        running.kill()
        running.start()
        assert start_offset(running, "topic") == 2


def test_records_without_a_timestamp_are_as_old_as_their_file() -> None:
    with broker({"log.retention.check.interval.ms": 200, "log.retention.hours": WEEK_HOURS}) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        for created in admin.create_topics([NewTopic(topic, 1) for topic in (*CODECS, "old")]).values():
            created.result(30)
        for codec in CODECS:
            _produce(running, codec, [NO_TIMESTAMP] * 10, codec)
        _produce(running, "old", [round(time.time() * 1000) - (WEEK_HOURS + 1) * HOUR_MS])
        _await_start_offset(running, "old", 1)  # by now, retention has looked at the others
        assert {codec: start_offset(running, codec) for codec in CODECS} == dict.fromkeys(CODECS, 0)
        over_a_week_ago = time.time() - (WEEK_HOURS + 1) * 3600
        for codec in CODECS:
            for file in Path(running.data_directory, f"{codec}-0").glob("*.log"):
                os.utime(file, (over_a_week_ago, over_a_week_ago))
        for codec in CODECS:
            _await_start_offset(running, codec, 10)


def _produce(running: RunningBroker, topic: str, timestamps: list[int], codec: str = "none") -> None:
    """One batch."""
    producer = Producer({"bootstrap.servers": running.bootstrap_servers, "linger.ms": 1_000, "compression.type": codec})
    for timestamp in timestamps:
        producer.produce(topic, b"a value " * 10, partition=0, timestamp=timestamp)
    assert producer.flush(30) == 0


def _await_start_offset(running: RunningBroker, topic: str, offset: int) -> None:
    eventually(lambda: start_offset(running, topic) >= offset, f"records of {topic} are deleted")
