"""Writes records in Kafka transactions from Spark's Python workers. Does not import Spark.

A batch is divided into splits. One task writes each split, in one transaction, with the split's own transactional id.
The same transaction commits the batch number as an offset of a consumer group, so that the records and the mark that
they are written become visible together. Opening a split first fences its earlier writers and then reads the mark, so
that the mark is final, and a replayed batch is skipped. A mark also has the epoch of the run that wrote it: a later run
of the same pipeline takes all splits with a higher epoch, after which the earlier one can open none.
"""

from __future__ import annotations

import queue
import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from odradek.pipelines.operating.backoff import TAKEN_OVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa

SPLIT = "__split"
Headers = list[tuple[str, str | bytes | None]]
DEFAULTS: Mapping[str, str | int] = {
    "transaction.timeout.ms": 300_000,  # the limit for writing a batch, and for how long a dead driver blocks readers
    "partitioner": "murmur2_random",  # the partitioner of the Java client, which writes all other records
    "message.max.bytes": 1_048_576,  # the Java client's default
    "linger.ms": 5,
}
ANSWER_S = 60.0
KEPT_ANSWER_S = 5.0  # for a cached producer, which can be replaced by a new one
PAUSE_S = 0.1
CLAIM_S = 5.0  # between the fencing of earlier writers and the epoch of the run that fences them
GRACE_S = 1.0  # for calls of the client that respect their timeout
MOST_KEPT = 16
# By name, because some are librdkafka's own codes, whose names start with an underscore.
TRANSIENT = {
    "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "UNSTABLE_OFFSET_COMMIT",
    "_TIMED_OUT", "_TRANSPORT", "_WAIT_COORD",
}  # fmt: skip
FENCED = {"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}


class DeliveryFailed(Exception):
    """A transaction could not be committed; read_committed consumers do not see its records."""


class TakenOver(DeliveryFailed):
    """A later run of the same pipeline writes, so that this one must stop."""

    def __init__(self, group: str) -> None:
        super().__init__(
            f"{TAKEN_OVER} ({group}), so that this one has stopped; run only one, or rename one of the two"
        )


@dataclass(frozen=True, slots=True)
class Mark:
    """The content of a group's offset: the batches of a checkpoint's query below `next_batch` are written."""

    query: str
    next_batch: int
    epoch: int = 0  # of the run that wrote the mark

    @classmethod
    def of_offset(cls, offset: int, metadata: str) -> Mark:
        """The mark of a committed offset; a negative offset means that there is none."""
        epoch, space, query = metadata.partition(" ")
        return cls(query, offset, int(epoch)) if space else cls(metadata, offset)

    @property
    def metadata(self) -> str:
        return f"{self.epoch} {self.query}"

    def covers(self, query: str, batch: int) -> bool:
        """Whether the batch is written; batch numbers of another checkpoint's query do not count."""
        return self.query == query and batch < self.next_batch


@dataclass(frozen=True, slots=True)
class Assignment:
    """The batch of which a task writes one split."""

    bootstrap_servers: str
    settings: tuple[tuple[str, str], ...]
    group: str
    marks: str  # the topic whose partitions represent the splits
    query: str
    batch: int
    epoch: int = 0  # of the run

    def transactional_id(self, split: int) -> str:
        return f"{self.group}.{split}"


class SplitWriter:
    """The producer of a split; it is fenced when another process opens the same split."""

    def __init__(self, assignment: Assignment, split: int) -> None:
        self._slot = (assignment.marks, split)
        self._epoch = assignment.epoch
        self._producer = Producer({
            **DEFAULTS, **client_settings(assignment), "transactional.id": assignment.transactional_id(split)
        })  # fmt: skip
        refuse_replaced(assignment, last_mark(assignment, split))  # before it fences the writers of a later run
        retry_timeouts(self._producer.init_transactions)
        with closing(reader_of(assignment, "read_committed")) as consumer:
            self._group = consumer.consumer_group_metadata()
            self._mark = self._begun = read_mark(consumer, self._slot)
        refuse_replaced(assignment, self._mark)

    def begin(self, query: str, batch: int, answer_s: float = ANSWER_S) -> bool:
        """Opens the transaction and commits the batch number in it; False if the batch is already written."""
        if self._mark.covers(query, batch):
            return False
        self._open(Mark(query, batch + 1, self._epoch), answer_s)
        return True

    def claim(self, epoch: int) -> None:
        """Stores the epoch of a run in the mark, which otherwise stays the same."""
        self._open(Mark(self._mark.query, max(self._mark.next_batch, 0), epoch), ANSWER_S)
        self.commit()

    def _open(self, mark: Mark, answer_s: float) -> None:
        self._begun = mark
        self._producer.begin_transaction()
        noted = TopicPartition(*self._slot, mark.next_batch, metadata=mark.metadata)
        # First, so that a fenced producer fails here and not after all records.
        call_with_deadline(
            answer_s + GRACE_S, lambda: self._producer.send_offsets_to_transaction([noted], self._group, answer_s)
        )

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
                    raise DeliveryFailed(f"topic {topic} accepted no record for {ANSWER_S:.0f} s") from None
                self._producer.poll(PAUSE_S)
            else:
                return

    def commit(self) -> None:
        retry_timeouts(self._producer.commit_transaction)
        self._mark = self._begun

    def abort(self) -> None:
        """Aborts the transaction, so that readers do not wait for its timeout; if that fails, the timeout aborts it."""
        try:
            self._producer.abort_transaction(ANSWER_S)
        except KafkaException:
            return


def retry_timeouts(call: Callable[[float], None]) -> None:
    """Repeats a call that timed out; librdkafka continues the operation between calls."""
    give_up_at = time.monotonic() + ANSWER_S
    while True:
        try:
            call(max(give_up_at - time.monotonic(), PAUSE_S))
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > give_up_at:
                raise
        else:
            return


def call_with_deadline(answer_s: float, call: Callable[[], None]) -> None:
    """Runs a call that may never return with a deadline.

    librdkafka waits for a group's coordinator beyond the timeout of the call (its issues 5456 and 5511), so that a
    broker restart would block the writers forever. Such a call keeps its thread and producer until the process ends.
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
        raise DeliveryFailed(f"the transaction coordinator did not respond within {answer_s:g} s") from None
    if error is not None:
        raise error


def read_mark(consumer: Consumer, slot: tuple[str, int]) -> Mark:
    give_up_at = time.monotonic() + ANSWER_S
    while True:
        try:
            (found,) = consumer.committed([TopicPartition(*slot)], ANSWER_S)
            if found.error is not None:  # the offset would look as if nothing had been written
                raise KafkaException(found.error)
        except KafkaException as error:
            if error.args[0].name() not in TRANSIENT or time.monotonic() > give_up_at:
                raise
            time.sleep(PAUSE_S)
        else:
            return Mark.of_offset(found.offset, found.metadata or "")


def client_settings(assignment: Assignment) -> dict[str, str | int]:
    return {**dict(assignment.settings), "bootstrap.servers": assignment.bootstrap_servers, "log_level": 0}


def reader_of(assignment: Assignment, isolation: str = "read_uncommitted") -> Consumer:
    """A consumer that reads the marks of a group; it does not join the group.

    With read_committed it waits for open transactions, which end when their split is opened again or when they time
    out. With read_uncommitted it reads the last committed marks.
    """
    client = client_settings(assignment)
    return Consumer({**client, "group.id": assignment.group, "isolation.level": isolation})


def last_mark(assignment: Assignment, split: int) -> Mark:
    """The last committed mark of a split; a transaction that is open may commit another."""
    with closing(reader_of(assignment)) as consumer:
        return read_mark(consumer, (assignment.marks, split))


def refuse_replaced(assignment: Assignment, mark: Mark) -> None:
    if mark.epoch > assignment.epoch:
        raise TakenOver(assignment.group)


def claim_split(assignment: Assignment, split: int) -> None:
    """Fences the writers of earlier runs, and stores the epoch of this one; raises if another run has claimed it.

    Until the epoch is stored, a task of an earlier run can open the split again, which fences this claim: it is
    repeated. The split is opened as by the run before, so that a run which has chosen the same epoch is refused.
    """
    give_up_at = time.monotonic() + ANSWER_S
    while True:
        try:
            SplitWriter(replace(assignment, epoch=assignment.epoch - 1), split).claim(assignment.epoch)
        except KafkaException as error:
            if error.args[0].name() not in FENCED or time.monotonic() > give_up_at:
                raise failure_of(assignment, split, error) from error
        else:
            return


# Opening a split takes several round trips, so its producer is cached for the next batch of this worker. It is removed
# from the cache while it writes, so that a failed producer is not reused.
KEPT: dict[str, SplitWriter] = {}


def write_split(assignment: Assignment, batches: Iterable[pa.RecordBatch], kept: dict[str, SplitWriter] = KEPT) -> int:
    """Writes the records of a task, which all belong to one split; returns their number once they are committed."""
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
        if isinstance(error, KafkaException) and split is not None:
            raise failure_of(assignment, split, error) from error
        raise
    return written


def opened(assignment: Assignment, split: int, kept: dict[str, SplitWriter]) -> SplitWriter | None:
    """A writer with an open transaction, or None if the batch is already written."""
    known = kept.pop(assignment.transactional_id(split), None)
    if known is not None:
        # Raises if another worker has opened this split since, or if the broker was unreachable.
        with suppress(KafkaException, DeliveryFailed):
            return known if known.begin(assignment.query, assignment.batch, KEPT_ANSWER_S) else None
    fresh = SplitWriter(assignment, split)
    return fresh if fresh.begin(assignment.query, assignment.batch) else None


def keep(name: str, writer: SplitWriter, kept: dict[str, SplitWriter]) -> None:
    kept[name] = writer
    while len(kept) > MOST_KEPT:
        del kept[next(iter(kept))]


def failure_of(assignment: Assignment, split: int, error: KafkaException) -> DeliveryFailed:
    what = f"batch {assignment.batch} was not committed to {assignment.bootstrap_servers}"
    if error.args[0].name() not in FENCED:
        return DeliveryFailed(f"{what}: {error.args[0].str()}")
    if is_replaced(assignment, split):
        return TakenOver(assignment.group)
    return DeliveryFailed(f"{what}: another task has opened the split {split} of {assignment.group}")


def is_replaced(assignment: Assignment, split: int) -> bool:
    """Whether a fenced writer belongs to a run from which a later one takes over.

    The later run stores its epoch after it has fenced the writer. Without the wait this run would start again, as
    after other failures, and take over from the later one.
    """
    give_up_at = time.monotonic() + CLAIM_S
    with closing(reader_of(assignment)) as consumer:
        while read_mark(consumer, (assignment.marks, split)).epoch <= assignment.epoch:
            if time.monotonic() > give_up_at:
                return False
            time.sleep(PAUSE_S)
    return True
