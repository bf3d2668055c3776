"""Sends simulated records to their topic at a steady rate, and pauses while the broker is unreachable.

The client queues records until the broker is back; they arrive once and in order (an idempotent producer without a
delivery timeout). When the queue is full the simulation pauses, and does not send a burst afterwards.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException

from odradek.conventions.dataclass import dataclass
from odradek.examples.simulator.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from confluent_kafka import KafkaError, Message, Producer

    from odradek.examples.simulator.population import Population, SimulatedRecord

Headers = list[tuple[str, str | bytes | None]]

QUEUED_S = 5.0  # the client's queue holds the records of this time
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0
SHORTEST_WAIT_S = 0.001  # above a thousand records per second, several are sent per turn
LONGEST_WAIT_S = 0.1  # interval for acknowledgements and for checking whether to stop
AWAY_AFTER_S = 2.0
FLUSH_S = 10.0
FLUSH_UNREACHABLE_S = 1.0


def producer_settings(rate: float) -> dict[str, Any]:
    """librdkafka settings for a simulation that sends at this rate."""
    return {
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": 2,
        "message.max.bytes": 1_048_576,  # the largest malformed records have a megabyte
        "message.timeout.ms": 0,
        "queue.buffering.max.messages": max(1000, int(rate * QUEUED_S)),
        "reconnect.backoff.max.ms": 1000,
    }


@dataclass(slots=True)
class Counts:
    sent: int = 0
    acknowledged: int = 0
    failed: int = 0
    late: int = 0
    duplicates: int = 0
    flaws: Counter[str] = field(default_factory=Counter)

    @property
    def malformed(self) -> int:
        return self.flaws.total()

    @property
    def waiting(self) -> int:
        """The number of records that are sent but not acknowledged."""
        return self.sent - self.acknowledged - self.failed


class RecordProducer:
    """Sends a population's records. `started_s` is the event time of the first one; event time runs at normal speed."""

    def __init__(
        self,
        producer: Producer,
        topic: str,
        population: Population,
        rate: float,
        *,
        started_s: float | None = None,
        headers: Callable[[], Headers] | None = None,
    ) -> None:
        self.counts = Counts()
        self.last_error: KafkaError | None = None
        self.failure: KafkaException | None = None  # the error that ended `sending`
        self.rate = rate  # may be changed while it sends
        self._producer = producer
        self._topic = topic
        self._population = population
        self._headers = headers
        self._started_s = time.time() if started_s is None else started_s
        # The last time that the broker acknowledged a record, or that none was outstanding.
        self._last_contact_at = time.monotonic()

    @property
    def is_broker_unreachable(self) -> bool:
        return self.counts.waiting > 0 and time.monotonic() - self._last_contact_at > AWAY_AFTER_S

    def run(self, is_stopped: threading.Event, seconds: float | None = None) -> None:
        """Sends until `is_stopped`, or for a number of seconds; then waits for outstanding acknowledgements."""
        began_at = time.monotonic()
        ends_at = None if seconds is None else began_at + seconds
        pace = Pace(self.rate, began_at)
        while not is_stopped.is_set() and (ends_at is None or time.monotonic() < ends_at):
            now = time.monotonic()
            pace.change_rate(self.rate)
            while not is_stopped.is_set() and (due_s := pace.take(now)) is not None:
                record = self._population.next_record(self._started_s + due_s)
                if record is not None:
                    self._send(record, is_stopped)
            self._serve(0)
            is_stopped.wait(min(LONGEST_WAIT_S, max(SHORTEST_WAIT_S, pace.wait_s(time.monotonic()))))
        self._producer.flush(FLUSH_UNREACHABLE_S if self.is_broker_unreachable else FLUSH_S)

    def _send(self, record: SimulatedRecord, is_stopped: threading.Event) -> None:
        """Passes one record to the client; while its queue is full, waits with a growing delay."""
        headers = None if self._headers is None else self._headers()
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                self._producer.produce(self._topic, record.value, record.key, headers=headers, callback=self._delivered)
                break
            except BufferError:
                if is_stopped.is_set():
                    return
                self._serve(pause_s)
                pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
        self.counts.sent += 1
        self.counts.late += record.is_late
        self.counts.duplicates += record.is_duplicate
        if record.flaw is not None:
            self.counts.flaws[record.flaw] += 1

    def _serve(self, timeout_s: float) -> None:
        self._producer.poll(timeout_s)
        if not self.counts.waiting:
            self._last_contact_at = time.monotonic()

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        self._last_contact_at = time.monotonic()
        if error is None:
            self.counts.acknowledged += 1
        else:
            self.counts.failed += 1
            self.last_error = error


@contextmanager
def sending(sender: RecordProducer, is_stopped: threading.Event) -> Iterator[None]:
    """Sends in a thread; sets `is_stopped` if it fails, with the reason in `failure`."""
    is_over = threading.Event()

    def send() -> None:
        try:
            sender.run(is_over)
        except KafkaException as error:
            sender.failure = error
            is_stopped.set()

    thread = threading.Thread(target=send, name="simulator", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
