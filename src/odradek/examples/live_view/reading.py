"""Follows the topics of a live view with a Kafka client and passes records to its model.

Topics that feed no figure are counted by their end offsets and not read.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # confluent_kafka.admin does not list it in __all__

from odradek.examples.live_view.records import SeenRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.examples.live_view.model import LiveViewModel

REFRESH_S = 0.5
DISCOVER_S = 2.0
REQUEST_TIMEOUT_S = 2.0
MOST_RECORDS = 5000
Ends = dict[str, dict[int, int]]


class ReadRecord(Protocol):
    """Methods of the Kafka client's `Message`."""

    def topic(self) -> str: ...

    def key(self) -> bytes | None: ...

    def value(self) -> bytes | None: ...

    def headers(self) -> list[tuple[str, bytes | None]]: ...


class RecordSource(Protocol):
    """Reads the partitions that are assigned to it, each from its offset on, without a group. A partition that cannot
    be read is left out, and its failure is put into `failed`."""

    @property
    def failed(self) -> dict[tuple[str, int], str]: ...

    def assign(self, offsets: Iterable[tuple[tuple[str, int], int]], /) -> None: ...

    def poll(self, timeout_s: float, /) -> Sequence[ReadRecord]: ...


class TopicFollower:
    """Follows topics with a source of records."""

    def __init__(self, source: RecordSource, admin: AdminClient, model: LiveViewModel) -> None:
        self._source = source
        self._admin = admin
        self._model = model
        self._names = tuple(dict.fromkeys([*model.topics.topics, *model.followed]))
        self._partitions: dict[str, int] = {}
        self._followed: set[tuple[str, int]] = set()
        self._failed: set[tuple[str, int]] = set()  # partitions that are read from their ends when they can be read
        self._refreshed_at = self._discovered_at = float("-inf")
        self._has_begun = False

    def poll(self, timeout_s: float) -> None:
        """Takes new records, and looks up end offsets at intervals."""
        now = time.monotonic()
        if now - self._refreshed_at >= REFRESH_S:
            self._refreshed_at = now
            try:
                self._refresh(now)
                self._model.is_broker_unreachable = False
            except KafkaException:
                self._model.is_broker_unreachable = True
        if not self._followed:
            time.sleep(timeout_s)
            return
        count = 0
        while count < MOST_RECORDS and (records := self._source.poll(0.0 if count else timeout_s)):
            count += len(records)
            for each in records:
                record = SeenRecord(each.topic(), each.key(), each.value(), dict(each.headers()))
                self._model.take(time.time(), record)

    def finish(self) -> None:
        """Polls once more, so that the summary has the final figures."""
        self._refreshed_at = float("-inf")
        self.poll(0.1)

    def _refresh(self, now: float) -> None:
        if now - self._discovered_at >= DISCOVER_S:
            self._discovered_at = now
            found = self._admin.list_topics(timeout=REQUEST_TIMEOUT_S).topics
            self._partitions = {
                name: len(found[name].partitions) for name in self._names if name in found and found[name].error is None
            }
        ends = self._ends()
        self._model.take_ends(time.time(), ends)
        self._follow(ends, from_end=not self._has_begun)
        self._has_begun = True

    def _ends(self) -> Ends:
        places = [TopicPartition(topic, index) for topic, count in self._partitions.items() for index in range(count)]
        if not places:
            return {}
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # confluent_kafka has no types here
        asked: dict[TopicPartition, OffsetSpec] = dict.fromkeys(places, latest)
        ends: Ends = {}
        for place, future in self._admin.list_offsets(asked, request_timeout=REQUEST_TIMEOUT_S).items():
            ends.setdefault(place.topic, {})[place.partition] = future.result().offset
        return ends

    def _follow(self, ends: Ends, *, from_end: bool) -> None:
        """Assigns the topics to be read; a new topic is read from its start. A partition that could not be read is
        tried again; its failure is shown until it is read."""
        failed = dict(self._source.failed)
        self._source.failed.clear()
        self._model.read_failure = next(iter(failed.values()), "")
        self._failed |= failed.keys()
        self._followed -= failed.keys()
        new = [
            ((topic, partition), end if from_end or (topic, partition) in self._failed else 0)
            for topic in self._model.followed
            for partition, end in ends.get(topic, {}).items()
            if (topic, partition) not in self._followed
        ]
        if new:
            self._source.assign(new)
            self._followed.update(key for key, _offset in new)
