"""A join of two streams at a steady rate: does the pipeline keep up, and how long does a joined record take?

The pipeline runs as users run it, in its own process. Each order has one payment, which is sent at the same time. The
time of a joined record begins when both were handed to the client. Broker, pipeline and load share the machine.
"""

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from bench.brokers import BrokerError, BrokerKind, RunningBroker, running
from bench.results import Experiment, Run
from bench.topics import create
from bench.workloads import JOIN_MEASURED_S, JOIN_WARM_UP_S, JOINED_RECORDS_PER_S
from odradek.cli.up import PipelineProcess

DEFINITION = """
pipeline: join
bootstrap_servers: {address}
sources:
  orders:
    topic: {orders}
    start: earliest
    schema: "order_id BIGINT, customer STRING, amount DOUBLE, ordered_ms BIGINT"
    columns: {{ordered_at: timestamp_millis(ordered_ms)}}
    watermark: {{column: ordered_at, delay: 5 seconds}}
  payments:
    topic: {payments}
    start: earliest
    schema: "order_id BIGINT, method STRING, paid_ms BIGINT"
    columns: {{paid_at: timestamp_millis(paid_ms)}}
    watermark: {{column: paid_at, delay: 5 seconds}}
steps:
  paid: {{from: orders, join: {{stream: payments, on: [order_id], within: 10 seconds, how: inner}}}}
sinks:
  joined: {{from: paid, topic: {joined}, key: order_id}}
# Those of docs/recipes.md for joins at high rates; with the defaults two cores do not keep up.
state_trigger: 10 seconds
spark:
  spark.driver.memory: 4g
  spark.driver.extraJavaOptions: -XX:+UseParallelGC
  spark.sql.streaming.stateStore.providerClass: {in_heap}
  spark.sql.streaming.maxBatchesToRetainInMemory: "1"
"""
IN_HEAP = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
PARTITIONS = 2
TICK_S = 0.01
QUEUED = 1_000_000  # records that wait in the client while the broker is slow
POLL_S = 0.1
AT_ONCE = 10_000
PARSED_OF = 50  # one of so many joined records is parsed for its time
FIRST_JOINED_S = 300.0


@dataclass(slots=True)
class Load:
    """Sends orders and payments at a rate, in a thread of its own; `sent` is the number of pairs."""

    producer: Producer
    orders: str
    payments: str
    rate: int
    sent: int = 0
    failure: BaseException | None = None

    def run(self, is_stopped: threading.Event) -> None:
        try:
            began_at = time.monotonic()
            while not is_stopped.wait(TICK_S):
                self._send_until(int((time.monotonic() - began_at) * self.rate))
                self.producer.poll(0)
        except (KafkaException, BufferError) as error:
            self.failure = error
            is_stopped.set()

    def _send_until(self, target: int) -> None:
        now_ms = int(time.time() * 1000)
        produce, orders, payments = self.producer.produce, self.orders, self.payments
        for number in range(self.sent, target):
            customer = number % 997
            order = f'{{"order_id":{number},"customer":"c{customer}","amount":12.5,"ordered_ms":{now_ms}}}'
            payment = f'{{"order_id":{number},"method":"card","paid_ms":{now_ms}}}'
            produce(orders, order, partition=number % PARTITIONS)
            produce(payments, payment, partition=number % PARTITIONS)
        self.sent = max(self.sent, target)


@dataclass(slots=True)
class Seen:
    """What came out: the number of joined records, and of some of them the time that they took."""

    joined: int = 0
    latencies_s: list[float] = field(default_factory=list)

    def add(self, values: Sequence[bytes], now_s: float) -> None:
        for value in values[::PARSED_OF]:
            found = json.loads(value)
            self.latencies_s.append(now_s - max(found["ordered_ms"], found["paid_ms"]) / 1000)
        self.joined += len(values)


def measure_join(kind: BrokerKind, directory: Path, experiment: Experiment, scale: float) -> Run:
    """Scales the times; the rate stays, unless the scale is that of a smoke test."""
    warm_up_s, seconds = JOIN_WARM_UP_S * scale, max(5.0, JOIN_MEASURED_S * scale)
    rate = JOINED_RECORDS_PER_S if scale >= 1 else max(100, int(JOINED_RECORDS_PER_S * scale))
    if scale != 1:
        experiment.note(f"2 × {rate:,} records/s, warmed up for {warm_up_s:.0f} s, measured for {seconds:.0f} s.")
    is_stopped = threading.Event()
    lines: list[str] = []
    with running(kind, directory) as broker:
        orders, payments, joined = (create(broker, PARTITIONS) for _ in range(3))
        file = directory / "join.yml"
        topics = {"orders": orders, "payments": payments, "joined": joined}
        file.write_text(DEFINITION.format(address=broker.address, in_heap=IN_HEAP, **topics))
        arguments = [str(file), "--checkpoints", str(directory / "checkpoints")]
        with PipelineProcess(arguments, is_stopped, lines.append) as pipeline:
            pipeline.wait_until_running()
            settings = {"linger.ms": 20, "queue.buffering.max.messages": QUEUED}
            load = Load(Producer({**settings, "bootstrap.servers": broker.address}), orders, payments, rate)
            sending = threading.Thread(target=load.run, args=(is_stopped,), daemon=True)
            sending.start()
            try:
                run = watch(broker, joined, load, warm_up_s, seconds, is_stopped)
            finally:
                is_stopped.set()
                sending.join()
    pipeline.raise_failure()
    if load.failure is not None:
        raise BrokerError(f"the load could not be sent: {load.failure}")
    if run is None:
        raise BrokerError(f"no joined record arrived; output of the pipeline: {' / '.join(lines[-5:])}")
    return run


def watch(
    broker: RunningBroker, topic: str, load: Load, warm_up_s: float, seconds: float, is_stopped: threading.Event
) -> Run | None:
    """The figures of the measured interval, which begins after the warm-up; None if nothing was joined before it."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "bench", "fetch.wait.max.ms": 100})
    try:
        consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
        seen = Seen()
        begins_at = time.monotonic() + warm_up_s
        read_until(consumer, seen, begins_at, is_stopped)
        if not seen.joined:
            read_until(consumer, seen, begins_at + FIRST_JOINED_S, is_stopped, is_first_enough=True)
        if not seen.joined:
            return None
        seen.latencies_s.clear()
        began_at, sent, joined = time.monotonic(), load.sent, seen.joined
        lag = [sent - joined]
        while time.monotonic() < began_at + seconds and not is_stopped.is_set():
            read_until(consumer, seen, time.monotonic() + 1, is_stopped)
            lag.append(load.sent - seen.joined)
        took_s = time.monotonic() - began_at
        return figures(seen, lag, (load.sent - sent) / took_s, (seen.joined - joined) / took_s)
    finally:
        consumer.close()


def read_until(
    consumer: Consumer, seen: Seen, ends_at: float, is_stopped: threading.Event, *, is_first_enough: bool = False
) -> None:
    while time.monotonic() < ends_at and not is_stopped.is_set():
        found = consumer.consume(AT_ONCE, POLL_S)
        values = [each.value() for each in found if each.error() is None]
        seen.add([each for each in values if each is not None], time.time())
        if values and is_first_enough:
            return


def figures(seen: Seen, lag: Sequence[int], sent_per_s: float, joined_per_s: float) -> Run:
    """The lag is in pairs; the pipeline keeps up if the joined share is about 1 and the lag stays bounded."""
    latencies = sorted(seen.latencies_s) or [float("inf")]
    third = max(1, len(lag) // 3)
    return {
        "sent_per_s": sent_per_s,
        "joined_share": joined_per_s / sent_per_s if sent_per_s else 0.0,
        "p50_ms": latencies[len(latencies) // 2] * 1000,
        "p99_ms": latencies[int(len(latencies) * 0.99)] * 1000,
        "lag_first": sum(lag[:third]) / third,
        "lag_last": sum(lag[-third:]) / third,
    }
