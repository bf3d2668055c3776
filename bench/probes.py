"""One record into each of many partitions: how a broker that was started again is asked whether all of it serves."""

import logging
import socket
import time
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaError, Message, Producer

from bench.brokers import BrokerError

DEADLINE_S = 600
PAUSE_S = 0.01

Place = tuple[str, int]
"""A topic and the number of a partition."""

_quiet = logging.getLogger("bench.librdkafka")
_quiet.disabled = True


def write_everywhere(address: str, places: Sequence[Place], is_broker_alive: Callable[[], bool]) -> None:
    """Returns when each of these partitions has acknowledged a record; waits for the port first."""
    deadline = time.monotonic() + DEADLINE_S

    def check() -> None:
        if not is_broker_alive():
            raise BrokerError("the broker ended before it could be measured")
        if time.monotonic() > deadline:
            raise BrokerError(f"after {DEADLINE_S} s there are partitions that take no record")

    _wait_for_port(address, check)
    _Writing(address, places).finish(check)


def _wait_for_port(address: str, check: Callable[[], None]) -> None:
    host, _, port = address.rpartition(":")
    while True:
        check()
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(PAUSE_S)  # a poll's pause
        else:
            return


class _Writing:
    def __init__(self, address: str, places: Sequence[Place]) -> None:
        # A client backs off for longer and longer; here it would be measured together with the broker.
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
        self._missing = set(places)
        self._refused = list(places)

    def finish(self, check: Callable[[], None]) -> None:
        while self._missing:
            check()
            places, self._refused = self._refused, []
            for topic, partition in places:
                self._producer.produce(topic, b"first", partition=partition, on_delivery=self._told)
            self._producer.poll(PAUSE_S)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        place = (message.topic() or "", message.partition() or 0)
        if error is None:
            self._missing.discard(place)
        else:
            self._refused.append(place)
