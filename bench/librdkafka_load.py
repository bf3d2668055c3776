"""The load generator without Go: librdkafka through confluent-kafka, with the flags and the JSON line of bench/load.

Python passes each record to librdkafka, which makes it slower than the Go program; it is equally slow with all brokers.
"""

import argparse
import json
import logging
import os
import random
import socket
import struct
import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

BATCH_OF_CALLS = 1000
SETTLE_S = 1.0
ARRIVAL_LIMIT_S = 10.0
RETRY_AFTER_S = 0.002

Report = dict[str, Any]

_quiet = logging.getLogger("bench.librdkafka")
_quiet.disabled = True


class LoadError(RuntimeError):
    """The run failed and has no figures."""


def producer_settings(given: argparse.Namespace, linger_ms: float) -> dict[str, object]:
    return {
        "bootstrap.servers": given.brokers,
        "acks": given.acks,
        "enable.idempotence": given.acks == "all",
        "compression.type": "none",
        "batch.size": given.batch,
        "message.max.bytes": max(given.batch, 1000),
        "batch.num.messages": 1_000_000,
        "linger.ms": linger_ms,
        "queue.buffering.max.messages": 500_000,
        "queue.buffering.max.kbytes": 1_000_000,
    }


def throughput(records: int, size_bytes: int, seconds: float) -> Report:
    return {
        "records": records,
        "seconds": seconds,
        "records_per_s": records / seconds,
        "mb_per_s": size_bytes / seconds / 1e6,
    }


class Rejections:
    """A delivery callback that counts the records that the broker rejected."""

    def __init__(self) -> None:
        self.count = 0
        self.first: KafkaError | None = None

    def __call__(self, error: KafkaError | None, _message: object) -> None:
        if error is not None:
            self.count += 1
            self.first = self.first or error

    def check(self, left: int) -> None:
        if self.count:
            raise LoadError(f"{self.count} records were rejected, the first with: {self.first}")
        if left:
            raise LoadError(f"{left} records were not acknowledged in time")


def produce(given: argparse.Namespace) -> Report:
    rejections = Rejections()
    settings = producer_settings(given, given.linger) | {"delivery.report.only.error": True}
    producer = Producer(settings, logger=_quiet)
    producer.list_topics(given.topic, timeout=30)  # so that connecting is not part of the measured time
    value = random.randbytes(given.size)
    began = time.monotonic()
    left = given.records
    while left > 0:
        count = min(left, BATCH_OF_CALLS)
        if given.keys:
            calls = [{"value": value, "key": b"key-%012d" % random.randrange(given.keys)} for _ in range(count)]
        else:
            calls = [{"value": value} for _ in range(count)]
        accepted = producer.produce_batch(given.topic, calls, on_delivery=rejections)
        left -= accepted
        producer.poll(0.01 if accepted < len(calls) else 0)  # a full queue: let it drain
    unsent = producer.flush(given.give_up_after)
    seconds = time.monotonic() - began
    rejections.check(unsent)
    return throughput(given.records, given.records * given.size, seconds)


def reader(given: argparse.Namespace) -> Consumer:
    """A consumer of all partitions from the earliest offset, assigned without a group."""
    settings = {
        "bootstrap.servers": given.brokers,
        "group.id": "bench",  # required by librdkafka, and not used
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 500,
        "fetch.max.bytes": 50 << 20,
        "max.partition.fetch.bytes": 1 << 20,
        "queued.min.messages": 1_000_000,
    }
    consumer = Consumer(settings, logger=_quiet)
    partitions = consumer.list_topics(given.topic, timeout=30).topics[given.topic].partitions
    consumer.assign([TopicPartition(given.topic, index, 0) for index in partitions])
    return consumer


def consume(given: argparse.Namespace) -> Report:
    consumer = reader(given)
    records = size_bytes = 0
    began = time.monotonic()
    while records < given.records:
        if time.monotonic() - began > given.give_up_after:
            raise LoadError(f"only {records} of {given.records} records arrived")
        for message in consumer.consume(10_000, timeout=0.1):
            if message.error() is not None:
                raise LoadError(str(message.error()))
            records += 1
            size_bytes += len(message)
    seconds = time.monotonic() - began
    consumer.close()
    return throughput(records, size_bytes, seconds)


def latency(given: argparse.Namespace) -> Report:
    producer = Producer(producer_settings(given, 0), logger=_quiet)
    producer.list_topics(given.topic, timeout=30)
    total = given.rate * (given.seconds + int(SETTLE_S))
    delays: list[float] = []
    began = time.monotonic()
    deadline = began + given.seconds + SETTLE_S + ARRIVAL_LIMIT_S
    receiver = threading.Thread(target=receive, args=(given, began, total, deadline, delays))
    receiver.start()
    sent = 0
    padding = bytes(max(0, given.size - 8))
    while sent < total:
        time.sleep(0.001)
        due = min(total, int((time.monotonic() - began) * given.rate))
        while sent < due:
            producer.produce(given.topic, struct.pack(">d", time.monotonic() - began) + padding)
            sent += 1
        producer.poll(0)
    producer.flush(ARRIVAL_LIMIT_S)
    sending = time.monotonic() - began
    receiver.join()
    expected = given.rate * given.seconds
    if len(delays) < expected * 0.99:
        raise LoadError(f"only {len(delays)} of {expected} records arrived")
    return summary(given, sorted(delays), total, sending)


def receive(given: argparse.Namespace, began: float, total: int, deadline: float, delays: list[float]) -> None:
    consumer = reader(given)
    received = 0
    while received < total and time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is None or message.error() is not None:
            continue
        received += 1
        sent = struct.unpack_from(">d", message.value() or b"")[0]
        if sent >= SETTLE_S:
            delays.append(time.monotonic() - began - sent)
    consumer.close()


def summary(given: argparse.Namespace, delays: list[float], total: int, sending: float) -> Report:
    report = throughput(total, total * given.size, sending) | {"counted": len(delays)}
    for name, share in (("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99), ("p999_ms", 0.999), ("max_ms", 1.0)):
        report[name] = delays[min(len(delays) - 1, int(share * len(delays)))] * 1000
    return report


def api_versions_request() -> bytes:
    client, software = b"bench", b"odradek-bench"
    header = struct.pack(">hhih", 18, 3, 1, len(client)) + client + b"\0"
    body = bytes([len(software) + 1]) + software + b"\x021" + b"\0"
    return struct.pack(">i", len(header + body)) + header + body


def greet(address: tuple[str, int], frame: bytes) -> socket.socket:
    connection = socket.create_connection(address, timeout=30)
    connection.sendall(frame)
    with connection.makefile("rb", buffering=0) as stream:
        size_bytes = int.from_bytes(stream.read(4) or b"", "big")
        while size_bytes > 0:
            piece = stream.read(size_bytes)
            if not piece:
                raise LoadError("the connection was closed within the ApiVersions response")
            size_bytes -= len(piece)
    return connection


def connections(given: argparse.Namespace) -> Report:
    host, _, port = given.brokers.rpartition(":")
    frame = api_versions_request()
    began = time.monotonic()
    report: Report = {}
    while len(kept) < given.count:
        try:
            kept.append(greet((host, int(port)), frame))
        except (OSError, LoadError) as failure:
            report["stopped_by"] = str(failure)
            break
    return report | {"connections": len(kept), "seconds": time.monotonic() - began}


kept: list[socket.socket] = []
"""Open until the program ends."""


def first(given: argparse.Namespace) -> Report:
    print("waiting", flush=True)  # the caller may start the broker
    host, _, port = given.brokers.rpartition(":")
    deadline = time.monotonic() + given.give_up_after
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_AFTER_S)
        else:
            break
    while True:
        admin = AdminClient({"bootstrap.servers": given.brokers}, logger=_quiet)
        try:
            admin.create_topics([NewTopic(given.topic, 6, 1)])[given.topic].result(10)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_AFTER_S)
        else:
            break
    producer = Producer(producer_settings(given, 0) | {"retry.backoff.ms": 2}, logger=_quiet)
    rejections = Rejections()
    producer.produce(given.topic, bytes(given.size), on_delivery=rejections)
    rejections.check(producer.flush(30))
    return {"acknowledged_unix_ns": time.time_ns()}


MODES = {"produce": produce, "consume": consume, "latency": latency, "connections": connections, "first": first}


def read(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("-brokers", default="127.0.0.1:9092")
    parser.add_argument("-topic", default="bench")
    parser.add_argument("-acks", choices=("1", "all"), default="all")
    parser.add_argument("-records", type=int, default=1_000_000)
    parser.add_argument("-size", type=int, default=100)
    parser.add_argument("-keys", type=int, default=0)
    parser.add_argument("-batch", type=int, default=1_000_000)
    parser.add_argument("-linger", type=lambda text: float(text.removesuffix("ms")), default=5.0)
    parser.add_argument("-rate", type=int, default=10_000)
    parser.add_argument("-seconds", type=int, default=10)
    parser.add_argument("-count", type=int, default=10_000)
    parser.add_argument("-give-up-after", type=lambda text: float(text.removesuffix("s")), default=300.0)
    return parser.parse_args(arguments)


def main() -> int:
    given = read(sys.argv[1:])
    try:
        report = MODES[given.mode](given)
    except (LoadError, KafkaException, OSError) as failure:
        print(f"load {given.mode}: {failure}", file=sys.stderr)
        return 1
    times = os.times()
    print(json.dumps(report | {"mode": given.mode, "client_cpu_s": times.user + times.system}), flush=True)
    if given.mode == "connections":
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
