"""Records of a topic in a Kafka transaction, written by Spark's Python workers. Nothing of Spark is imported here.

A batch's records are split; each split is written by one task, in one transaction, under a transactional id of its own.
The same transaction commits the batch's number as the offset of a group, so that the records and the note that they are
written appear together. Whoever opens a split fences all who wrote it before and only then reads the note: what it
finds is final, and a batch that comes again is skipped.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa

SPLIT = "__split"
Headers = list[tuple[str, str | bytes | None]]
DEFAULTS: Mapping[str, str | int] = {
    "transaction.timeout.ms": 300_000,  # how long a batch may take to be written, and a dead driver hold up readers
    "partitioner": "murmur2_random",  # as the Java client, by which everything else is written, places keys
    "message.max.bytes": 1_048_576,  # as much as the Java client sends
    "linger.ms": 5,
}
ANSWER_S = 60.0
KEPT_ANSWER_S = 5.0  # of a producer in whose place a new one can be had
PAUSE_S = 0.1
GRACE_S = 1.0  # for a client that keeps its time
MOST_KEPT = 16
# By name, because some of them are the client's own and begin with an underscore.
AWAY = {
    "NOT_COORDINATOR",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "UNSTABLE_OFFSET_COMMIT",
    "_TIMED_OUT",
    "_TRANSPORT",
    "_WAIT_COORD",
}
FENCED = {"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}


class DeliveryFailed(Exception):
    """A transaction that could not be committed; its records do not exist for those who read what is committed."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a group's offset says: batches of a checkpoint's query below `next_batch` are written."""

    query: str
    next_batch: int

    def covers(self, query: str, batch: int) -> bool:
        """A query of another checkpoint counts its batches anew."""
        return self.query == query and batch < self.next_batch


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a task needs to know of the batch that it writes a split of."""

    bootstrap_servers: str
    settings: tuple[tuple[str, str], ...]
    group: str
    marks: str  # the topic whose partitions stand for the splits
    query: str
    batch: int

    def transactional_id(self, split: int) -> str:
        return f"{self.group}.{split}"


class SplitWriter:
    """The producer of a split. It is fenced as soon as another process opens the same split."""

    def __init__(self, assignment: Assignment, split: int) -> None:
        client = {**dict(assignment.settings), "bootstrap.servers": assignment.bootstrap_servers, "log_level": 0}
        self._slot = (assignment.marks, split)
        self._producer = Producer({**DEFAULTS, **client, "transactional.id": assignment.transactional_id(split)})
        patiently(self._producer.init_transactions)
        consumer = Consumer({**client, "group.id": assignment.group, "isolation.level": "read_committed"})
        try:
            self._group = consumer.consumer_group_metadata()
            self._mark = self._begun = read_mark(consumer, self._slot)
        finally:
            consumer.close()

    def begin(self, query: str, batch: int, answer_s: float = ANSWER_S) -> bool:
        """Opens the transaction with the batch's number; False where the batch is written already."""
        if self._mark.covers(query, batch):
            return False
        self._begun = Mark(query, batch + 1)
        self._producer.begin_transaction()
        noted = TopicPartition(*self._slot, batch + 1, metadata=query)
        # First, because a producer that is fenced learns it here and not after all the records.
        within(answer_s + GRACE_S, lambda: self._producer.send_offsets_to_transaction([noted], self._group, answer_s))
        return True

    def add(self, records: pa.RecordBatch) -> int:
        columns = (records.column(name).to_pylist() for name in ("topic", "key", "value", "headers"))
        for topic, key, value, headers in zip(*columns, strict=True):
            pairs: Headers = [(each["key"], each["value"]) for each in headers or ()]
            self._produce(topic, value, key, pairs)
        self._producer.poll(0)
        return int(records.num_rows)

    def _produce(self, topic: str, value: bytes, key: bytes, headers: Headers) -> None:
        give_up_at = time.monotonic() + ANSWER_S
        while True:
            try:
                self._producer.produce(topic, value, key, headers=headers)
            except BufferError:
                if time.monotonic() > give_up_at:
                    raise DeliveryFailed(f"topic {topic} took no record for {ANSWER_S:.0f} s") from None
                self._producer.poll(PAUSE_S)
            else:
                return

    def commit(self) -> None:
        patiently(self._producer.commit_transaction)
        self._mark = self._begun

    def abort(self) -> None:
        """So that readers need not wait for the time-out; a producer that cannot even do that is left to it."""
        try:
            self._producer.abort_transaction(ANSWER_S)
        except KafkaException:
            return


def patiently(call: Callable[[float], None]) -> None:
    """A call that ran out of time is to be made again; what it does goes on meanwhile."""
    give_up_at = time.monotonic() + ANSWER_S
    while True:
        try:
            call(max(give_up_at - time.monotonic(), PAUSE_S))
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > give_up_at:
                raise
        else:
            return


def within(answer_s: float, call: Callable[[], None]) -> None:
    """For a call that may never return: librdkafka waits for a group's coordinator past the time it is given
    (its issues 5456 and 5511), so a broker that was restarted would hold up its writers for ever. Such a call keeps its
    thread and its producer until the process ends.
    """
    outcome: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            call()
        except Exception as error:
            outcome.put(error)
        else:
            outcome.put(None)

    threading.Thread(target=run, daemon=True).start()
    try:
        error = outcome.get(timeout=answer_s)
    except queue.Empty:
        raise DeliveryFailed(f"the coordinator of a transaction gave no answer in {answer_s:g} s") from None
    if error is not None:
        raise error


def read_mark(consumer: Consumer, slot: tuple[str, int]) -> Mark:
    give_up_at = time.monotonic() + ANSWER_S
    while True:
        try:
            (found,) = consumer.committed([TopicPartition(*slot)], ANSWER_S)
            if found.error is not None:  # it has no offset then, as if nothing had ever been written
                raise KafkaException(found.error)
        except KafkaException as error:
            if error.args[0].name() not in AWAY or time.monotonic() > give_up_at:
                raise
            time.sleep(PAUSE_S)
        else:
            return Mark(found.metadata or "", found.offset)


# Opening a split takes several round trips, so its producer is kept for the next batch that this worker gets. It is
# taken out while it writes: one that fails is not used again.
KEPT: dict[str, SplitWriter] = {}


def write_split(assignment: Assignment, batches: Iterable[pa.RecordBatch], kept: dict[str, SplitWriter] = KEPT) -> int:
    """Writes the records of a task, which are of one split; returns how many, once they are committed."""
    writer: SplitWriter | None = None
    split = None
    written = 0
    try:
        for records in batches:
            if not records.num_rows:
                continue
            splits = set(records.column(SPLIT).to_pylist())
            if split is None:
                (split,) = splits
                writer = opened(assignment, split, kept)
            elif splits != {split}:
                raise AssertionError(f"splits {splits} in the task of split {split}")
            if writer is not None:
                written += writer.add(records)
        if writer is not None and split is not None:
            writer.commit()
            keep(assignment.transactional_id(split), writer, kept)
    except BaseException as error:
        if writer is not None:
            writer.abort()
        if isinstance(error, KafkaException):
            raise DeliveryFailed(told(assignment, error)) from error
        raise
    return written


def opened(assignment: Assignment, split: int, kept: dict[str, SplitWriter]) -> SplitWriter | None:
    """A writer with an open transaction, or None where there is nothing to do."""
    known = kept.pop(assignment.transactional_id(split), None)
    if known is not None:
        # Fenced, when another worker has had this split since; without an answer, when the broker was away.
        with contextlib.suppress(KafkaException, DeliveryFailed):
            return known if known.begin(assignment.query, assignment.batch, KEPT_ANSWER_S) else None
    fresh = SplitWriter(assignment, split)
    return fresh if fresh.begin(assignment.query, assignment.batch) else None


def keep(name: str, writer: SplitWriter, kept: dict[str, SplitWriter]) -> None:
    kept[name] = writer
    while len(kept) > MOST_KEPT:
        del kept[next(iter(kept))]


def told(assignment: Assignment, error: KafkaException) -> str:
    what = f"batch {assignment.batch} was not committed to {assignment.bootstrap_servers}"
    if error.args[0].name() in FENCED:
        return f"{what}: another run of this pipeline has taken over ({assignment.group}); stop one of the two"
    return f"{what}: {error.args[0].str()}"
