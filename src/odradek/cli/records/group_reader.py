"""The consumer behind `odradek consume --group`: a member of a consumer group that commits what was written."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import TopicPartition

from odradek.cli.framework.output import note
from odradek.cli.records.record_reader import BATCH_RECORDS, END_OF_PARTITION, POLL_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from confluent_kafka import Consumer, Message

    from odradek.cli.client.cluster import Cluster

JOIN_TIMEOUT_S = 30.0


class GroupReader:
    """Reads the partitions that the group assigns to this member.

    Offsets are stored by `mark_written` only, and committed in the background and when the reader is closed: a record
    that was not written out is delivered again.
    """

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        group: str,
        *,
        from_beginning: bool,
        until_end: bool,
        idle_timeout_ms: int | None = None,
    ) -> None:
        self.cluster = cluster
        self.topic = topic
        self.group = group
        self.until_end = until_end
        self.idle_timeout_ms = idle_timeout_ms
        self._active_at = time.monotonic()
        self._assignment: set[int] = set()
        self._unfinished: set[int] | None = None  # assigned partitions whose end was not reached; None: no assignment
        self._consumer = cluster.consumer(
            {
                "group.id": group,
                "enable.auto.commit": True,
                "auto.offset.reset": "earliest" if from_beginning else "latest",
                "enable.partition.eof": until_end,
                "fetch.error.backoff.ms": 50,
                "fetch.queue.backoff.ms": 20,  # by default a full queue pauses fetching for a second
            }
        )
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)

    def __enter__(self) -> GroupReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def _assigned(self, _consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self._active_at = time.monotonic()
        added = {each.partition for each in partitions}
        self._assignment |= added
        self._unfinished = (self._unfinished or set()) | added
        numbers = [str(number) for number in sorted(added)]
        noun = "partition" if len(numbers) == 1 else "partitions"
        note(f"group {self.group} assigned {noun} {', '.join(numbers) or '(none)'} of {self.topic}")

    def _revoked(self, _consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        """A revocation of all partitions leaves no assignment: another one, possibly an empty one, follows."""
        revoked = {each.partition for each in partitions}
        self._assignment -= revoked
        self._unfinished = (self._unfinished or set()) - revoked if self._assignment else None

    def batches(self) -> Iterator[list[Message]]:
        """Records as they arrive; ends after `idle_timeout_ms` without one, or at the end of all partitions."""
        self._active_at = time.monotonic()
        while not (self.until_end and self._unfinished is not None and not self._unfinished):
            first = self._consumer.poll(POLL_S)
            messages = [] if first is None else [first, *self._consumer.consume(BATCH_RECORDS - 1, 0)]
            records = [message for message in messages if self._is_record(message)]
            if records:
                self._active_at = time.monotonic()
                yield records
            elif self._is_idle():
                return

    def _is_idle(self) -> bool:
        """Whether no record came for the idle timeout. Joining the group, which may take seconds, does not count."""
        if self.idle_timeout_ms is None:
            return False
        limit_s = self.idle_timeout_ms / 1000 + (JOIN_TIMEOUT_S if self._unfinished is None else 0)
        return time.monotonic() - self._active_at >= limit_s

    def _is_record(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            return True
        if error.name() == END_OF_PARTITION:
            if self._unfinished is not None:
                self._unfinished.discard(message.partition() or 0)
            return False
        if error.fatal() or not error.retriable():
            raise self.cluster.failure(error, f"group {self.group}, topic {self.topic}")
        return False

    def mark_written(self, messages: Sequence[Message]) -> None:
        """Store the offsets after these records, to be committed."""
        last = {message.partition() or 0: message.offset() or 0 for message in messages}
        offsets = [TopicPartition(self.topic, partition, offset + 1) for partition, offset in last.items()]
        assigned = {each.partition for each in self._consumer.assignment()}
        offsets = [each for each in offsets if each.partition in assigned]
        if offsets:
            self._consumer.store_offsets(offsets=offsets)
