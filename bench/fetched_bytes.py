"""The bytes that a broker sends to the rigs pipeline, as a multiple of the topic's bytes.

The pipeline runs until it has caught up with a filled topic. Its clients reach the broker through a proxy that counts
the bytes of each direction; the topic's bytes are what a plain consumer receives for all records.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.brokers import BrokerError, free_port
from bench.results import Run
from odradek.cli.up import PipelineProcess
from odradek.examples.folders import find_example
from odradek.examples.simulator.loading import load_simulation
from odradek.examples.simulator.population import Population
from odradek.examples.simulator.producer import producer_settings
from odradek.testing import broker

TOPIC = "rigs"
PARTITIONS = 2
BUFFER_BYTES = 1 << 18
ANSWER_S = 60.0
SMALLEST_WAIT_S = 0.1
RATE = 1_000  # of event time, in records per second


class CountingProxy:
    """Forwards connections to a port of this machine, in a thread of its own; `sent` counts bytes to the clients."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self.sent = 0
        self._target = target
        self._loop = asyncio.new_event_loop()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        server = self._loop.run_until_complete(asyncio.start_server(self._forward, "127.0.0.1", self.port))
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(server.close)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_broker, to_broker = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._copy(reader, to_broker), self._copy(from_broker, writer, is_counted=True))

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_counted: bool = False
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(BUFFER_BYTES):
                self.sent += len(data) if is_counted else 0
                writer.write(data)
                await writer.drain()
        writer.close()


def measure_fetched_bytes(directory: Path, records: int, definition: Path | None = None) -> Run:
    """Runs the rigs, or another definition of the same topics."""
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    proxy = CountingProxy(port)
    listeners = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}",
    }
    with proxy.running(), broker(listeners):
        address = f"127.0.0.1:{proxy.port}"
        fill(address, records)
        before = proxy.sent
        consume(address, records)
        topic_bytes = proxy.sent - before
        arguments = [str(definition or find_example("rigs").folder / "pipeline.yml"), "--until-caught-up"]
        arguments += ["--bootstrap-server", address, "--checkpoints", str(directory / "checkpoints")]
        arguments += ["--warehouse", f"sqlite:///{directory / 'rigs.db'}"]
        is_stopped = threading.Event()
        before = proxy.sent
        with PipelineProcess(arguments, is_stopped, lambda _line: None) as pipeline:
            is_stopped.wait()
        pipeline.raise_failure()
        fetched_bytes = proxy.sent - before
    return {"fetched_times": fetched_bytes / topic_bytes, "topic_bytes_per_record": topic_bytes / records}


def fill(address: str, records: int) -> None:
    rigs = find_example("rigs")
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(ANSWER_S)
    producer = Producer({**producer_settings(RATE), "bootstrap.servers": address})
    fleet = Population(load_simulation(rigs.simulator, {}))
    began_s = time.time() - records / RATE
    sent = number = 0
    while sent < records:
        record = fleet.next_record(began_s + number / RATE)
        number += 1
        if record is not None:
            while len(producer) >= RATE:
                producer.poll(SMALLEST_WAIT_S)
            producer.produce(TOPIC, record.value, record.key)
            sent += 1
            producer.poll(0)
    if producer.flush(ANSWER_S):
        raise BrokerError("the broker did not acknowledge the records")


def consume(address: str, records: int) -> None:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "bench"})
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
    found = 0
    give_up_at = time.monotonic() + ANSWER_S
    while found < records and time.monotonic() < give_up_at:
        found += sum(each.error() is None for each in consumer.consume(1_000, 0.5))
    consumer.close()
    if found < records:
        raise BrokerError(f"only {found} of {records} records were read")
