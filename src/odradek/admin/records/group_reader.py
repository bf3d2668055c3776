"""The reader behind `odradek consume --group`: a member of a consumer group that commits what was written.

The Kafka client library is the member: it joins, keeps the membership, and commits. Its partitions are paused; their
records are fetched as those of a reader without a group, so that no record can stop the member.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from confluent_kafka import Consumer, KafkaException, TopicPartition

from odradek.admin.cluster import Cluster, close_consumer
from odradek.admin.offsets import EARLIEST, LATEST, Key
from odradek.admin.records.record_fetcher import RecordFetcher
from odradek.admin.records.record_reader import COMMAND_SETTINGS, POLL_S
from odradek.admin.topics import topics_text
from odradek.conventions.failures import Failure, Terminated

if TYPE_CHECKING:
    from odradek.admin.records.fetched_batches import FetchedRecord, UnreadableBatch

JOIN_TIMEOUT_S = 30.0
COMMITTED_TIMEOUT_S = 0.5  # a call of the client library that Ctrl-C does not end
CLOSE_TIMEOUT_S = 10.0
INTERRUPTED_CLOSE_TIMEOUT_S = 0.6


def partitions_text(keys: Iterable[Key]) -> str:
    """`partition 0 of a; partitions 1, 2 of b`."""
    numbers: dict[str, list[str]] = {}
    for topic, partition in sorted(keys):
        numbers.setdefault(topic, []).append(str(partition))
    shown = ((f"partition{'' if len(found) == 1 else 's'}", found, topic) for topic, found in numbers.items())
    return "; ".join(f"{noun} {', '.join(found)} of {topic}" for noun, found, topic in shown)


class GroupReader:
    """Reads the partitions that the group assigns to this member.

    Offsets are stored by `mark_written` only, and committed in the background and when the reader is closed: a record
    that was not written out is delivered again. A batch that cannot be read is a Failure, and is not passed over.
    `on_trouble` gets a line when the reading cannot go on for a while.
    """

    def __init__(
        self, cluster: Cluster, topics: Sequence[str], group: str, *, from_beginning: bool, until_end: bool,
        idle_timeout_ms: int | None = None, on_trouble: Callable[[str], None] = lambda _trouble: None,
        notify: Callable[[str], None] = lambda _line: None,
    ) -> None:  # fmt: skip
        self.cluster = cluster
        self.group = group
        self.until_end = until_end
        self.idle_timeout_ms = idle_timeout_ms
        self._notify = notify
        self._active_at = time.monotonic()
        self._topics = list(topics)
        self._assignment: set[Key] = set()
        self._unplaced: set[Key] = set()  # assigned partitions whose committed offsets are not known
        self._unfinished: set[Key] | None = None  # assigned partitions whose end was not reached; None: no assignment
        self._default_offset = EARLIEST if from_beginning else LATEST
        reset = "earliest" if from_beginning else "latest"
        settings = COMMAND_SETTINGS._replace(offset_reset=reset)
        self._fetcher = RecordFetcher(cluster, settings, self._stop_at, on_trouble=on_trouble)
        self._consumer = cluster.consumer({"group.id": group, "enable.auto.commit": True, "auto.offset.reset": reset})
        self._consumer.subscribe(self._topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)

    def __enter__(self) -> GroupReader:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._fetcher.close()
        is_awaited = error is not None and not isinstance(error, Terminated)
        close_consumer(self._consumer, INTERRUPTED_CLOSE_TIMEOUT_S if is_awaited else CLOSE_TIMEOUT_S)

    def _stop_at(self, unreadable: UnreadableBatch) -> NoReturn:
        partition = f"{unreadable.topic}:{unreadable.partition}"
        raise Failure(
            f"{unreadable}; `odradek group reset {self.group} --topic {partition} --to-offset "
            f"{unreadable.last_offset + 1} --execute` passes over it"
        )

    def _assigned(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        try:
            consumer.incremental_assign(list(partitions))
        except KafkaException:  # the group rebalances eagerly
            consumer.assign(list(partitions))
        consumer.pause(list(partitions))
        self._active_at = time.monotonic()
        added = {(each.topic, each.partition) for each in partitions}
        self._assignment |= added
        self._unplaced |= added
        self._unfinished = (self._unfinished or set()) | added
        self._notify(f"group {self.group} assigned {partitions_text(added) or 'no partitions'}")

    def _revoked(self, _consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """A revocation of all partitions leaves no assignment: another one, possibly an empty one, follows."""
        revoked = {(each.topic, each.partition) for each in partitions}
        self._assignment -= revoked
        self._unplaced -= revoked
        self._fetcher.remove(revoked)
        self._unfinished = (self._unfinished or set()) - revoked if self._assignment else None

    def batches(self) -> Iterator[list[FetchedRecord]]:
        """Records as they arrive; ends after `idle_timeout_ms` without one, or at the end of all partitions."""
        self._active_at = time.monotonic()
        while not (self.until_end and self._unfinished is not None and not self._unfinished):
            self._serve_group()
            self._place()
            records = self._fetcher.poll(POLL_S)
            if self._unfinished:
                self._unfinished = {each for each in self._unfinished if not self._fetcher.is_at_end(each)}
            if records:
                self._active_at = time.monotonic()
                yield records
            elif self._is_idle():
                return

    def _serve_group(self) -> None:
        """Runs the callbacks of rebalances. Failure for errors that are not retried."""
        while (message := self._consumer.poll(0)) is not None:
            error = message.error()
            if error is not None and (error.fatal() or not error.retriable()):
                raise self.cluster.failure(error, f"group {self.group}, reading {topics_text(self._topics)}")

    def _place(self) -> None:
        """Looks up committed offsets of new partitions, until they are known: the default would skip records."""
        if not self._unplaced:
            return
        wanted = [TopicPartition(*key) for key in sorted(self._unplaced)]
        try:
            committed = self._consumer.committed(wanted, COMMITTED_TIMEOUT_S)
        except KafkaException as problem:
            error = problem.args[0]
            if error.name() == "_TIMED_OUT" or (error.retriable() and not error.fatal()):
                return
            raise self.cluster.failure(error, f"group {self.group}") from None
        passed_over: list[Key] = []
        for each in committed:
            if each.error is None:
                offset = each.offset if each.offset >= 0 else self._default_offset
                if offset == LATEST:
                    passed_over.append((each.topic, each.partition))
                self._fetcher.assign([((each.topic, each.partition), offset)])
                self._unplaced.discard((each.topic, each.partition))
            elif each.error.fatal() or not each.error.retriable():
                raise self.cluster.failure(each.error, f"group {self.group}, {each.topic}-{each.partition}")
        if passed_over:
            consequence = "only new records are read, without --from-beginning"
            self._notify(f"group {self.group} has no offsets of {partitions_text(passed_over)}: {consequence}")

    def _is_idle(self) -> bool:
        """Whether no record came for the idle timeout. Joining the group, which may take seconds, does not count."""
        if self.idle_timeout_ms is None:
            return False
        limit_s = self.idle_timeout_ms / 1000 + (JOIN_TIMEOUT_S if self._unfinished is None else 0)
        return time.monotonic() - self._active_at >= limit_s

    def mark_written(self, records: Sequence[FetchedRecord]) -> None:
        """Store the offsets after these records, to be committed."""
        last = {(record.topic(), record.partition()): record.offset() for record in records}
        offsets = [TopicPartition(*key, offset + 1) for key, offset in last.items() if key in self._assignment]
        if offsets:
            self._consumer.store_offsets(offsets=offsets)
