"""The producer behind `odradek produce`: writes records, and counts what was acknowledged and what was refused."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException

from odradek.admin.kafka_admin import ConfigResource
from odradek.admin.topics.topic_choice import with_similar_topics
from odradek.cli.framework.output import note, print_json, say
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, ThrottleEvent

    from odradek.admin.cluster import Cluster
    from odradek.cli.records.record_input import InputRecord

WARNS_AFTER_S = 2.0
GIVES_UP_AFTER_S = 30.0  # without an acknowledgement, while the broker does not throttle
LARGEST_RECORD_BYTES = 64_000_000  # the broker decides; this is what the client's queue holds
UNKNOWN_TOPIC_TIMEOUT_MS = 5_000
POLL_EVERY_RECORDS = 500


class RecordWriter:
    """Writes to one topic; `finish` waits for every acknowledgement.

    Records have no timeout of their own: those that wait for their turn while a quota throttles the client would
    expire.
    """

    def __init__(self, cluster: Cluster, topic: str, settings: dict[str, Any]) -> None:
        self.cluster = cluster
        self.topic = topic
        self.acks = str(settings["acks"])
        self.written_ranges: dict[int, list[int]] = {}  # partition -> first offset, last offset, records
        self.failures = 0
        self.first_error: KafkaError | None = None
        self.size_bytes = 0
        self._since_poll = 0
        self._reason = ""  # for which the rest was given up
        self._progressed_s = time.monotonic()
        self._is_throttled = self._has_warned = False
        defaults = {
            "message.timeout.ms": 0,
            "message.max.bytes": LARGEST_RECORD_BYTES,
            "topic.metadata.propagation.max.ms": UNKNOWN_TOPIC_TIMEOUT_MS,
            "queue.buffering.max.kbytes": 65536,
        }
        self.producer = cluster.producer(
            {**defaults, **settings}, on_delivery=self._delivered, throttle_cb=self._throttled
        )

    @property
    def written(self) -> int:
        return sum(each[2] for each in self.written_ranges.values())

    def write(self, record: InputRecord) -> bool:
        """Returns False if the records before this one are not acknowledged, so that it was not sent."""
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
                if not self._may_wait():
                    return False
            except KafkaException as error:
                raise self.cluster.failure(error.args[0], self._subject(record), "Write") from None
        self.size_bytes += len(record.value or b"") + len(record.key or b"")
        self._since_poll += 1
        if self._since_poll == POLL_EVERY_RECORDS:
            self._since_poll = 0
            self.producer.poll(0)
            if not len(self.producer):
                self._progressed_s = time.monotonic()
            return self._may_wait()
        return True

    def _subject(self, record: InputRecord) -> str:
        return f"topic {self.topic}" + ("" if record.partition is None else f", partition {record.partition}")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures += 1
            self.first_error = self.first_error or error
            return
        self._progressed_s = max(self._progressed_s, time.monotonic())
        partition, offset = message.partition(), message.offset()
        each = self.written_ranges.get(partition)  # type: ignore[arg-type]  # a delivered record has a partition and an offset
        if each is None:
            self.written_ranges[partition] = [offset, offset, 1]  # type: ignore[index, list-item]  # as above
        else:
            each[1] = offset  # type: ignore[assignment]  # as above
            each[2] += 1

    def finish(self) -> None:
        """Wait until every record is acknowledged or has failed."""
        self._progressed_s = max(self._progressed_s, time.monotonic())
        while self.producer.flush(0.5):
            self._may_wait()

    def _throttled(self, event: ThrottleEvent) -> None:
        """Called by `poll`: the broker answers the next request after this time."""
        self._progressed_s = max(self._progressed_s, time.monotonic() + event.throttle_time)
        if not self._is_throttled:
            self._is_throttled = True
            note("a quota of the cluster throttles this client, so that writing takes longer (`odradek quota list`)")

    def _may_wait(self) -> bool:
        """Gives up the records that are not acknowledged if there was no progress for a while; a note says before what
        is in the way."""
        if self._reason:
            return False
        waited_s = time.monotonic() - self._progressed_s
        if waited_s < GIVES_UP_AFTER_S:
            if waited_s > WARNS_AFTER_S and not self._has_warned:
                self._has_warned = True
                if (obstacle := self._obstacle()) is not None:
                    note(f"waiting for up to {GIVES_UP_AFTER_S:.0f} s: {obstacle}")
            return True
        self._reason = self._obstacle() or "the broker did not acknowledge in time; is it running?"
        self.producer.purge()
        return False

    def _obstacle(self) -> str | None:
        """Why the brokers do not acknowledge, as far as they show it."""
        try:
            partitions = self.cluster.describe_topic(self.topic).partitions
            resource = ConfigResource("topic", self.topic)
            configs = self.cluster.finish(self.cluster.admin().describe_configs([resource])[resource], "settings")
        except Failure:
            return None
        least = int(configs["min.insync.replicas"].value)
        for each in partitions:
            if each.leader is None:
                return f"partition {each.id} has no leader; `odradek topic describe {self.topic}` shows its replicas"
            if self.acks == "all" and len(each.isr) < min(least, len(each.replicas)):
                in_sync = count_text(len(each.isr), "in-sync replica")
                return (
                    f"partition {each.id} has {in_sync}, and min.insync.replicas is {least} (NOT_ENOUGH_REPLICAS); "
                    "start the brokers of its other replicas"
                )
        return None

    def raise_failures(self, stopped_after: int | None = None) -> None:
        """Failure if a record was refused. `stopped_after` is the number of records after which no more were read."""
        if self.first_error is None:
            return
        rest = "" if stopped_after is None else f"; input after record {stopped_after:,} was not sent"
        count = count_text(self.failures, "record")
        if self._reason:
            raise Failure(f"{count} not acknowledged: topic {self.topic}: {self._reason}{rest}")
        failure = self.cluster.failure(self.first_error, f"topic {self.topic}", "Write")
        raise Failure(f"{count} not written: {with_similar_topics(self.cluster, failure).message}{rest}")

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
