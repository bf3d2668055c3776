"""One record into each of many partitions, to learn when a restarted broker serves all of them."""

import logging
import socket
import time
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaError, Message, Producer

from bench.brokers import BrokerError

DEADLINE_S = 600
PAUSE_S = 0.01

Partition = tuple[str, int]
"""A topic and a partition index."""

_quiet = logging.getLogger("bench.librdkafka")
_quiet.disabled = True


def write_everywhere(address: str, partitions: Sequence[Partition], is_broker_alive: Callable[[], bool]) -> None:
    """Returns when each of these partitions has acknowledged a record; waits for the port first."""
    deadline = time.monotonic() + DEADLINE_S

    def check() -> None:
        if not is_broker_alive():
            raise BrokerError("the broker ended before it could be measured")
        if time.monotonic() > deadline:
            raise BrokerError(
                f"{len(partitions)} partitions were to acknowledge a record; some have not after {DEADLINE_S} s"
            )

    _wait_for_port(address, check)
    _ProbeWriter(address, partitions).finish(check)


def _wait_for_port(address: str, check: Callable[[], None]) -> None:
    host, _, port = address.rpartition(":")
    while True:
        check()
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(PAUSE_S)
        else:
            return


class _ProbeWriter:
    def __init__(self, address: str, partitions: Sequence[Partition]) -> None:
        # With the default back-off, the client's waiting time would be measured as the broker's.
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "acks": "all",
                "linger.ms": 0,
                "retry.backoff.ms": 10,
                "retry.backoff.max.ms": 50,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 50,
                "topic.metadata.refresh.fast.interval.ms": 10,
                "topic.metadata.propagation.max.ms": 1000 * DEADLINE_S,
            },
            logger=_quiet,
        )
        self._missing = set(partitions)
        self._refused = list(partitions)

    def finish(self, check: Callable[[], None]) -> None:
        while self._missing:
            check()
            partitions, self._refused = self._refused, []
            for topic, index in partitions:
                self._producer.produce(topic, b"first", partition=index, on_delivery=self._on_delivery)
            self._producer.poll(PAUSE_S)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        partition = (message.topic() or "", message.partition() or 0)
        if error is None:
            self._missing.discard(partition)
        else:
            self._refused.append(partition)
