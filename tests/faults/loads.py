"""Producers under load, and what they know afterwards: which records were acknowledged, where and when.

Values are numbers, which rise by one in each partition, so that a reader finds what was lost, repeated or reordered.
"""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import KafkaException, Producer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

RECORDS_PER_S = 2_000
RECORDS_PER_TRANSACTION = 100
VALUE_BYTES = 100
TURN_S = 0.005
FLUSH_S = 180.0
CALL_S = 10.0
TRANSACTIONAL_ID = "load"


class Acknowledgement(NamedTuple):
    partition: int
    number: int
    offset: int
    time_s: float


def encode_value(*numbers: int) -> bytes:
    return ":".join(map(str, numbers)).encode().ljust(VALUE_BYTES)


def decode_value(value: bytes) -> tuple[int, ...]:
    return tuple(int(each) for each in value.decode().strip().split(":"))


def longest_gap_s(times_s: list[float], begin_s: float, end_s: float) -> float:
    """The longest time without an acknowledgement that lies between the two moments."""
    inside = [begin_s, *(each for each in sorted(times_s) if begin_s < each < end_s), end_s]
    return max(later - earlier for earlier, later in itertools.pairwise(inside))


class Load(threading.Thread):
    """Runs until `finish`. `problems` are errors that a user would have seen."""

    def __init__(self, topic: str, partitions: int) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self.partitions = partitions
        self.problems: list[str] = []
        self.is_finishing = threading.Event()

    def finish(self) -> None:
        self.is_finishing.set()
        self.join(FLUSH_S + 60)
        if self.is_alive():
            self.problems.append("the producer did not end")


class IdempotentLoad(Load):
    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        partitions: int,
        settings: Mapping[str, Any] | None = None,
        records_per_s: int = RECORDS_PER_S,
    ) -> None:
        super().__init__(topic, partitions)
        self._records_per_s = records_per_s
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "acks": "all",
                "queue.buffering.max.messages": 2_000_000,
                "log_level": 0,
                **(settings or {}),
            }
        )
        self.sent = [0] * partitions
        self.acknowledged: list[Acknowledgement] = []

    def run(self) -> None:
        began_s, count = time.monotonic(), 0
        while not self.is_finishing.is_set():
            due = int((time.monotonic() - began_s) * self._records_per_s)
            for number in range(count, due):
                self._send(number % self.partitions)
            count = max(count, due)
            self._producer.poll(TURN_S)
        left = self._producer.flush(FLUSH_S)
        if left:
            self.problems.append(f"{left} records were not acknowledged within {FLUSH_S:g} s")

    def _send(self, partition: int) -> None:
        number = self.sent[partition]
        self.sent[partition] += 1
        self._producer.produce(
            self.topic, encode_value(number), partition=partition, on_delivery=self._note(partition, number)
        )

    def _note(self, partition: int, number: int) -> Callable[[Any, Any], None]:
        def note(error: Any, message: Any) -> None:
            if error is not None:
                self.problems.append(f"record {number} of partition {partition}: {error.str()}")
            else:
                self.acknowledged.append(Acknowledgement(partition, number, message.offset(), time.monotonic()))

        return note

    def gap_s(self, begin_s: float, end_s: float) -> float:
        """Of the partition with the longest."""
        times: list[list[float]] = [[] for _ in range(self.partitions)]
        for each in list(self.acknowledged):
            times[each.partition].append(each.time_s)
        return max(longest_gap_s(each, begin_s, end_s) for each in times)


@dataclass
class Transaction:
    """`outcome` is None when it is not known."""

    number: int
    records: list[tuple[int, int]] = field(default_factory=list)  # partitions and numbers
    outcome: bool | None = None


class TransactionalLoad(Load):
    """One transaction after another, each with records for all partitions."""

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int, records_per_s: int = RECORDS_PER_S) -> None:
        super().__init__(topic, partitions)
        self._interval_s = RECORDS_PER_TRANSACTION / records_per_s
        self.transactional_id = TRANSACTIONAL_ID
        self._settings = {
            "bootstrap.servers": bootstrap_servers,
            "transactional.id": TRANSACTIONAL_ID,
            # Longer than the longest fault: a client waits up to 60 s on the socket of a suspended broker. With the
            # default of 60 s the coordinator may meanwhile abort its transaction, as Apache Kafka's does, and fence it.
            "transaction.timeout.ms": 120_000,
            "log_level": 0,
        }
        self._sent = 0
        self.transactions: list[Transaction] = []
        self.commit_times_s: list[float] = []
        self.is_committing = threading.Event()

    def run(self) -> None:
        producer: Producer | None = None
        while not self.is_finishing.is_set():
            began_s = time.monotonic()
            try:
                if producer is None:
                    producer = self._make_producer()
                self._run_one(producer)
            except KafkaException as problem:
                error = problem.args[0]
                self.problems.append(f"transaction {len(self.transactions)}: {error.str()}")
                producer = None  # its last transaction has an unknown outcome
            rest_s = self._interval_s - (time.monotonic() - began_s)
            time.sleep(max(rest_s, 0))  # a poll's pause: the rate of the load

    def _make_producer(self) -> Producer:
        producer = Producer(self._settings)
        self._insist(lambda: producer.init_transactions(CALL_S))
        return producer

    def _run_one(self, producer: Producer) -> None:
        transaction = Transaction(len(self.transactions))
        self.transactions.append(transaction)
        try:
            producer.begin_transaction()
            for _ in range(RECORDS_PER_TRANSACTION):
                partition, number = self._sent % self.partitions, self._sent
                self._sent += 1
                transaction.records.append((partition, number))
                producer.produce(self.topic, encode_value(transaction.number, number), partition=partition)
            producer.poll(0)
            self.is_committing.set()
            self._insist(lambda: producer.commit_transaction(CALL_S))
            transaction.outcome = True
            self.commit_times_s.append(time.monotonic())
        except KafkaException as problem:
            if not problem.args[0].txn_requires_abort():
                raise
            self._insist(lambda: producer.abort_transaction(CALL_S))
            transaction.outcome = False
        finally:
            self.is_committing.clear()

    def has_committed_since(self, time_s: float) -> bool:
        return self.commit_times_s[-1] > time_s

    def _insist(self, call: Callable[[], None]) -> None:
        """Errors that pass are repeated, as librdkafka's documentation asks for."""
        deadline_s = time.monotonic() + FLUSH_S
        while True:
            try:
                return call()
            except KafkaException as problem:
                if not problem.args[0].retriable() or time.monotonic() > deadline_s:
                    raise

    def gap_s(self, begin_s: float, end_s: float) -> float:
        return longest_gap_s(list(self.commit_times_s), begin_s, end_s)
