"""Reads the committed records of a topic, without those of aborted transactions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import Message

WAIT_S = 90.0
AT_THE_END = "_PARTITION_EOF"


def committed_records(bootstrap_servers: str, topic: str) -> list[Message]:
    """All committed records, up to the last stable offset."""
    settings: dict[str, str | int | bool] = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "none",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 20,
    }
    consumer = Consumer(settings)
    try:
        unread = set(consumer.list_topics(topic, WAIT_S).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, index, 0) for index in unread])
        found: list[Message] = []
        give_up_at = time.monotonic() + WAIT_S
        while unread:
            assert time.monotonic() < give_up_at
            for message in consumer.consume(1000, 0.2):
                error = message.error()
                if error is None:
                    found.append(message)
                elif error.name() == AT_THE_END:
                    unread.discard(message.partition())
                else:
                    raise KafkaException(error)
        return found
    finally:
        consumer.close()


def header_of(message: Message, name: str) -> str:
    headers: Any = message.headers() or ()
    return str(next((value or b"").decode() for key, value in headers if key == name))
