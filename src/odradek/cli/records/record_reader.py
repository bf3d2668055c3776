"""The consumer behind `odradek consume` and `odradek bench`: reads ranges of assigned partitions in batches."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import TopicPartition

from odradek.cli.framework.output import note

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType

    from confluent_kafka import Message

    from odradek.cli.client.cluster import Cluster
    from odradek.cli.records.consume_range import PartitionRange

POLL_S = 0.2  # bounds how long Ctrl-C takes
BATCH_RECORDS = 1000
END_OF_PARTITION = "_PARTITION_EOF"
NO_GROUP_RIGHTS = "GROUP_AUTHORIZATION_FAILED"  # librdkafka looks for a coordinator, although no group is joined


class RecordReader:
    """Reads ranges of partitions; `batches` yields lists of records until the ends or the idle timeout are reached."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        ranges: Sequence[PartitionRange],
        *,
        until_end: bool,
        idle_timeout_ms: int | None = None,
        settings: Mapping[str, Any] | None = None,
        required: Mapping[str, Any] | None = None,
        batch_records: int = BATCH_RECORDS,
    ) -> None:
        self.cluster = cluster
        self.topic = topic
        self.idle_timeout_ms = idle_timeout_ms
        self.batch_records = batch_records
        self.until_end = until_end
        self.ends = {r.partition: r.end_offset for r in ranges if r.start_offset < r.end_offset} if until_end else {}
        self.reached: dict[int, int] = {}  # the offset after the last record, of partitions that are finished
        self._consumer = cluster.consumer(
            {
                "enable.partition.eof": until_end,
                "fetch.error.backoff.ms": 50,
                "fetch.queue.backoff.ms": 20,  # by default a full queue pauses fetching for a second
                **(settings or {}),
            },
            required,
        )
        self._consumer.assign(
            [
                TopicPartition(topic, r.partition, r.start_offset)
                for r in ranges
                if not until_end or r.partition in self.ends
            ]
        )
        self._is_warned = False

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def batches(self) -> Iterator[list[Message]]:
        """Batches of the records that have arrived, up to `batch_records` each."""
        heard_at = time.monotonic()
        while not self.until_end or self.ends:
            first = self._consumer.poll(POLL_S)
            if first is None:
                self._warn_when_lost()
                if self.idle_timeout_ms is not None and (time.monotonic() - heard_at) * 1000 >= self.idle_timeout_ms:
                    return
                continue
            messages = [first, *self._consumer.consume(self.batch_records - 1, 0)]
            records = self._until_ends(messages) if self.until_end else [m for m in messages if self._is_record(m)]
            if records:
                heard_at = time.monotonic()
                self._is_warned = False
                yield records

    def mark_written(self, messages: Sequence[Message]) -> None:
        """Nothing to do: without a group no offsets are committed."""

    def _is_record(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            return True
        if error.name() == NO_GROUP_RIGHTS:
            return False
        if error.name() != END_OF_PARTITION and (error.fatal() or not error.retriable()):
            raise self.cluster.failure(error, f"topic {self.topic}, partition {message.partition()}")
        return False

    def _until_ends(self, messages: Sequence[Message]) -> list[Message]:
        """The records before the ends. A partition is finished at its last record or at its end."""
        records = []
        for message in messages:
            partition, offset = message.partition(), message.offset()
            end = self.ends.get(partition)  # type: ignore[arg-type]  # a record that was read has a partition and an offset
            is_record = self._is_record(message)
            if end is None or offset is None:
                continue
            if is_record and offset < end:
                records.append(message)
            error = message.error()
            if offset >= end - 1 or (error is not None and error.name() == END_OF_PARTITION):
                self.reached[partition] = offset + 1 if is_record else offset  # type: ignore[index]  # as above
                del self.ends[partition]  # type: ignore[arg-type]
        return records

    def _warn_when_lost(self) -> None:
        error, self.cluster.last_error = self.cluster.last_error, None
        if error is not None and error.name() in {"_ALL_BROKERS_DOWN", "_TRANSPORT"} and not self._is_warned:
            note(f"lost the connection to {self.cluster.bootstrap_servers}; retrying until Ctrl-C")
            self._is_warned = True
