"""Shared by the examples: the broker's address, a new topic, and orders in it."""

import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PATIENCE_SECONDS = 60
CONNECT_SECONDS = 5
ORDERS = range(1, 11)
WORST_MOMENT, LAST_ORDER = "5", "10"


def broker_address() -> str:
    """The first argument, or the default address of `odradek broker`; exits if no broker listens there."""
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except ValueError:
        sys.exit(f"{address} is no address; write HOST:PORT")
    except OSError as error:
        sys.exit(f"no broker at {address} ({error.strerror or error}); start one with `odradek broker`")
    return address


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
    """The offset at which the group continues after a restart; 0 if nothing is committed."""
    (position,) = consumer.committed([TopicPartition(topic, partition)], timeout=PATIENCE_SECONDS)
    return max(position.offset, 0)


def deadline() -> float:
    return time.monotonic() + PATIENCE_SECONDS


def is_over(moment: float) -> bool:
    if time.monotonic() > moment:
        sys.exit(f"no record within {PATIENCE_SECONDS} seconds; is the broker running?")
    return False


def run_with_crash(script: str, work: Callable[[str, str, bool], None]) -> None:
    """Process ten orders with a worker that is killed and a second one; print which were lost or repeated."""
    if sys.argv[1:2] == ["work"]:
        work(sys.argv[2], sys.argv[3], sys.argv[4] == "crashes")
        return
    servers = broker_address()
    topic = new_topic(servers)
    place_orders(servers, topic, ORDERS[0], ORDERS[-1])
    processed = []
    for end in ("crashes", "finishes"):
        worker = [sys.executable, script, "work", servers, topic, end]
        run = subprocess.run(worker, stdout=subprocess.PIPE, text=True, check=False)
        processed += run.stdout.split()
        print(f"a worker processes {' '.join(run.stdout.split())} and {end}")
    lost = [str(order) for order in ORDERS if str(order) not in processed]
    repeated = sorted({order for order in processed if processed.count(order) > 1})
    print(f"lost: {' '.join(lost) or 'none'}; processed twice: {' '.join(repeated) or 'none'}")
