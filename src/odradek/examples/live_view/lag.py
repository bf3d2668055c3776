"""The lag of a pipeline: records of its input without a seen output."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.examples.live_view.definition import Lag
    from odradek.examples.live_view.records import SeenRecord
    from odradek.examples.live_view.topic_counts import TopicCounts


class LagMeter:
    """Records from before the start of the view count as done."""

    def __init__(self, declared: Lag, counts: TopicCounts) -> None:
        self.topics = declared.seen_in
        self.input = declared.topic
        self.greatest = 0
        self._counts = counts
        self._progress: dict[int, int] = {}

    def take(self, _now_s: float, record: SeenRecord) -> None:
        source = record.source
        if source is not None:
            partition, offset = source
            self._progress[partition] = max(self._progress.get(partition, 0), offset + 1)

    def take_ends(self) -> None:
        for partition, end in self._counts.first_ends(self.input).items():
            self._progress.setdefault(partition, end)
        self.greatest = max(self.greatest, self.records)

    @property
    def records(self) -> int:
        ends = self._counts.ends(self.input)
        return sum(max(0, end - self._progress.get(partition, end)) for partition, end in ends.items())

    def seconds(self, now_s: float) -> float | None:
        """The lag in seconds, estimated from the input rate."""
        rate = self._counts.rate(self.input, now_s)
        return self.records / rate if rate else None
