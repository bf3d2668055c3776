"""The producer behind `odradek produce`: writes records, and counts what was acknowledged and what was refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException

from odradek.cli.framework.failure import Failure
from odradek.cli.framework.output import count_text, print_json, say

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

    from odradek.cli.client.cluster import Cluster
    from odradek.cli.records.record_input import InputRecord

MESSAGE_TIMEOUT_MS = 30_000  # librdkafka's default of five minutes is too long for a command line
UNKNOWN_TOPIC_TIMEOUT_MS = 5_000
POLL_EVERY_RECORDS = 500


class RecordWriter:
    """Writes to one topic; `finish` waits for every acknowledgement."""

    def __init__(self, cluster: Cluster, topic: str, settings: dict[str, Any]) -> None:
        self.cluster = cluster
        self.topic = topic
        self.acks = str(settings["acks"])
        self.written_ranges: dict[int, list[int]] = {}  # partition -> first offset, last offset, records
        self.failures = 0
        self.first_error: KafkaError | None = None
        self.size_bytes = 0
        self._since_poll = 0
        defaults = {
            "message.timeout.ms": MESSAGE_TIMEOUT_MS,
            "topic.metadata.propagation.max.ms": UNKNOWN_TOPIC_TIMEOUT_MS,
            "queue.buffering.max.kbytes": 65536,
        }
        self.producer = cluster.producer({**defaults, **settings}, on_delivery=self._delivered)

    @property
    def written(self) -> int:
        return sum(each[2] for each in self.written_ranges.values())

    def write(self, record: InputRecord) -> None:
        optional: dict[str, Any] = {}
        if record.partition is not None:
            optional["partition"] = record.partition
        if record.timestamp_ms is not None:
            optional["timestamp"] = record.timestamp_ms
        if record.headers:
            optional["headers"] = record.headers
        while True:
            try:
                self.producer.produce(self.topic, record.value, record.key, **optional)
                break
            except BufferError:  # the client's queue is full: let it drain
                self.producer.poll(0.2)
            except KafkaException as error:
                raise self.cluster.failure(error.args[0], self._subject(record)) from None
        self.size_bytes += len(record.value or b"") + len(record.key or b"")
        self._since_poll += 1
        if self._since_poll == POLL_EVERY_RECORDS:
            self._since_poll = 0
            self.producer.poll(0)

    def _subject(self, record: InputRecord) -> str:
        return f"topic {self.topic}" + ("" if record.partition is None else f", partition {record.partition}")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures += 1
            self.first_error = self.first_error or error
            return
        partition, offset = message.partition(), message.offset()
        each = self.written_ranges.get(partition)  # type: ignore[arg-type]  # a delivered record has a partition and an offset
        if each is None:
            self.written_ranges[partition] = [offset, offset, 1]  # type: ignore[index, list-item]  # as above
        else:
            each[1] = offset  # type: ignore[assignment]  # as above
            each[2] += 1

    def finish(self) -> None:
        """Wait until every record is acknowledged or has failed."""
        while self.producer.flush(0.5):
            pass

    def raise_failures(self, stopped_after: int | None = None) -> None:
        """Failure if a record was refused. `stopped_after` is the number of records after which no more were read."""
        if self.first_error is not None:
            failure = self.cluster.failure(self.first_error, f"topic {self.topic}")
            rest = "" if stopped_after is None else f"; input after record {stopped_after:,} was not sent"
            raise Failure(f"{count_text(self.failures, 'record')} not written: {failure.message}{rest}")

    def print_summary(self, as_json: bool, *, is_new_topic: bool = False) -> None:
        """Print how many records were written, and to which offsets. With acks=0 the offsets are unknown."""
        ranges = [
            {"partition": partition, "first_offset": first, "last_offset": last, "records": records}
            for partition, (first, last, records) in sorted(self.written_ranges.items())
        ]
        if self.acks == "0":
            ranges = [{"partition": each["partition"], "records": each["records"]} for each in ranges]
        if as_json:
            summary = {"topic": self.topic, "records": self.written, "bytes": self.size_bytes, "partitions": ranges}
            print_json({**summary, "failed": self.failures, "topic_created": is_new_topic})
            return
        if not ranges and self.failures:
            return
        say(
            f"{count_text(self.written, 'record')} written to {self.topic}{':' if ranges else ''}{_ranges_text(ranges)}"
        )


def _ranges_text(ranges: list[dict[str, int]]) -> str:
    """` partition 0, offset 7`, or a line for each partition."""
    lines = []
    for each in ranges:
        first, last = each.get("first_offset"), each.get("last_offset")
        if first is None:
            span = count_text(each["records"], "record") + ", unacknowledged"
        else:
            span = f"offset {first}" if first == last else f"offsets {first}–{last}"
        lines.append(f"partition {each['partition']}, {span}")
    if len(lines) == 1:
        return " " + lines[0]
    return "".join(f"\n  {line}" for line in lines)
