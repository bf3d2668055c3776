"""What every example here needs first: the broker's address, and a topic of its own with a few orders in it."""

import sys
import time
import uuid

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PATIENCE_SECONDS = 60


def broker_address() -> str:
    """The first argument, or where `odradek broker` listens."""
    return sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"


def new_topic(servers: str, prefix: str = "orders", partitions: int = 1) -> str:
    topic = f"{prefix}-{uuid.uuid4().hex[:6]}"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
    return topic


def place_orders(servers: str, topic: str, first: int, last: int, partitions: int = 1) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for number in range(first, last + 1):
        producer.produce(topic, str(number), partition=number % partitions)
    producer.flush()


def committed_offset(consumer, topic: str, partition: int = 0) -> int:
    """Where the group goes on after a restart; 0 when it has not committed yet."""
    (place,) = consumer.committed([TopicPartition(topic, partition)], timeout=PATIENCE_SECONDS)
    return max(place.offset, 0)


def deadline() -> float:
    return time.monotonic() + PATIENCE_SECONDS


def is_over(moment: float) -> bool:
    if time.monotonic() > moment:
        sys.exit(f"nothing came for {PATIENCE_SECONDS} seconds; is the broker there?")
    return False
