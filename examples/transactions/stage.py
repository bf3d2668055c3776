"""Around the example: the broker's address, topics with orders, workers that are killed, and the count of invoices."""

import socket
import subprocess
import sys
import time
import uuid
from collections import Counter

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

SECONDS = 60
ORDERS = range(1, 31)
LAST_ORDER = str(ORDERS[-1])
STEPS = ("before produce", "after produce", "after offsets", "before commit", "after commit")
NEVER = "never"


def broker_address() -> str:
    """The first argument, or the default address of `odradek broker`; exits if no broker listens there."""
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except ValueError:
        sys.exit(f"{address} is no address; write HOST:PORT")
    except OSError as error:
        sys.exit(f"no broker at {address} ({error.strerror or error}); start one with `odradek broker`")
    return address


def deadline() -> float:
    return time.monotonic() + SECONDS


def is_over(moment: float) -> bool:
    if time.monotonic() > moment:
        sys.exit(f"no record within {SECONDS} seconds; is the broker running?")
    return False


def run_with_crashes(script: str) -> None:
    """One worker for each step, killed there, and a last one that finishes; print what they wrote."""
    servers = broker_address()
    orders, invoices = (f"{name}-{uuid.uuid4().hex[:6]}" for name in ("orders", "invoices"))
    admin = AdminClient({"bootstrap.servers": servers})
    for created in admin.create_topics([NewTopic(orders, 1, 1), NewTopic(invoices, 1, 1)]).values():
        created.result()
    producer = Producer({"bootstrap.servers": servers})
    for number in ORDERS:
        producer.produce(orders, str(number), key=f"customer-{number % 3}")
    producer.flush()
    for step in (*STEPS, NEVER):
        subprocess.run([sys.executable, script, "work", servers, orders, invoices, step], check=False)
        written = len(read(servers, invoices, "read_uncommitted"))
        committed = len(read(servers, invoices, "read_committed"))
        killed = "finished" if step == NEVER else f"was killed {step}"
        print(f"a worker {killed}: {committed} invoices are committed, {written} were written", flush=True)
    counts = Counter(read(servers, invoices, "read_committed"))
    missing = [number for number in ORDERS if f"invoice {number}" not in counts]
    repeated = [invoice for invoice, count in counts.items() if count > 1]
    print(f"{len(ORDERS)} orders: {len(missing)} without an invoice, {len(repeated)} with more than one")


def read(servers: str, topic: str, isolation_level: str) -> list[str]:
    """All values in the topic for a reader of this isolation level."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "unused",
            "isolation.level": isolation_level,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values, end = [], deadline()
    while not is_over(end):
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error():  # the end of the partition
            break
        values.append(message.value().decode())
    consumer.close()
    return values
