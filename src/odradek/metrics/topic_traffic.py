"""Bytes and records of clients by topic, for a bounded number of topics; all others share one series."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from odradek.metrics.bounded_series import OTHER, BoundedSeries
from odradek.metrics.samples import Sample

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


class TopicCounters:
    __slots__ = ("bytes_in", "bytes_out", "records_in", "records_out")

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.records_in = 0
        self.records_out = 0.0


class TopicTraffic:
    """Called for each batch that was appended and each partition that was fetched from, never for a record."""

    __slots__ = ("_series", "replication_bytes_out")

    def __init__(self, largest: int) -> None:
        self._series = BoundedSeries(largest, TopicCounters)
        self.replication_bytes_out = 0

    def produced(self, topic: str, size_bytes: int, records: int) -> None:
        counters = self._series.by_label.get(topic) or self._series.get(topic)
        counters.bytes_in += size_bytes
        counters.records_in += records

    def fetched(self, topic: str, size_bytes: int, records: float) -> None:
        counters = self._series.by_label.get(topic) or self._series.get(topic)
        counters.bytes_out += size_bytes
        counters.records_out += records

    def by_label(self, sizes: Mapping[str, int]) -> Counter[str]:
        """Sizes of topics by label. Topics with traffic have labels of their own, then others by name, while there is
        room: a follower, and a broker after its start, have no traffic of clients."""
        used = [topic for topic in sizes if topic in self._series]
        others = sorted(topic for topic in sizes if topic not in self._series)
        own = {*used, *others[: self._series.largest - len(used)]}
        labeled: Counter[str] = Counter()
        for topic, size_bytes in sizes.items():
            labeled[topic if topic in own else OTHER] += size_bytes
        return labeled

    def retain(self, topics: Collection[str]) -> None:
        """Forgets topics that do not exist any more."""
        self._series.retain(topics)

    def samples(self) -> Iterable[Sample]:
        for topic, counters in self._series.items():
            labels = (topic,)
            yield Sample("odradek_topic_bytes_in_total", labels, counters.bytes_in)
            yield Sample("odradek_topic_records_in_total", labels, counters.records_in)
            yield Sample("odradek_topic_bytes_out_total", labels, counters.bytes_out)
            yield Sample("odradek_topic_records_out_total", labels, round(counters.records_out))
        yield Sample("odradek_replication_bytes_out_total", (), self.replication_bytes_out)
