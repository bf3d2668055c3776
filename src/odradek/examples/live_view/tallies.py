"""Episodes of repeated records, counts by a column, and totals of columns. Pure, and limited in what they keep."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import field
from typing import TYPE_CHECKING, Any

from odradek.conventions.dataclass import dataclass
from odradek.examples.live_view.records import text_of

if TYPE_CHECKING:
    from odradek.examples.live_view.definition import Counts, Episodes, Total
    from odradek.examples.live_view.records import SeenRecord

MOST_EPISODES = 500
MOST_NAMES = 50
OTHERS = "others"


@dataclass(slots=True)
class Episode:
    """A period in which records with the same key repeat, from the first to the last."""

    began_s: float
    last_s: float
    times: int = 0
    columns: dict[str, Any] = field(default_factory=dict)
    latency_ms: float | None = None


class EpisodeList:
    def __init__(self, declared: Episodes) -> None:
        self.declared = declared
        self.topics = (declared.topic,)
        self.counts: Counter[str] = Counter()  # records by the last column of the key
        self._episodes: OrderedDict[tuple[str, ...], Episode] = OrderedDict()

    def take(self, now_s: float, record: SeenRecord) -> None:
        key = tuple(record.text(column) for column in self.declared.key)
        add(self.counts, key[-1])
        episode = self._episodes.get(key)
        if episode is None or now_s - episode.last_s > self.declared.ends_after_s:
            episode = self._episodes[key] = Episode(now_s, now_s)
            self._episodes.move_to_end(key)
            if len(self._episodes) > MOST_EPISODES:
                self._episodes.popitem(last=False)
        episode.times += 1
        episode.last_s = now_s
        shown = {*self.declared.key, *(column for _title, column in self.declared.columns)}
        episode.columns = {column: record.columns.get(column) for column in shown}
        since_s = None if self.declared.since is None else record.time_s(self.declared.since)
        episode.latency_ms = None if since_s is None else max(0.0, now_s - since_s) * 1000

    def __len__(self) -> int:
        return len(self._episodes)

    def latest(self, number: int) -> list[Episode]:
        """Episodes by their first record, newest first, so that a continuing episode keeps its position."""
        return list(reversed(self._episodes.values()))[:number]


class CountTable:
    def __init__(self, declared: Counts) -> None:
        self.declared = declared
        self.topics = (declared.topic,)
        self.counts: Counter[str] = Counter()

    def take(self, _now_s: float, record: SeenRecord) -> None:
        if self.declared.header is not None:
            add(self.counts, record.reason(self.declared.header))
        else:
            add(self.counts, text_of(record.columns.get(self.declared.column or "")))


class TotalCounter:
    def __init__(self, declared: Total) -> None:
        self.declared = declared
        self.topics = (declared.topic,)
        self.total = 0.0

    def take(self, _now_s: float, record: SeenRecord) -> None:
        self.total += 1 if self.declared.column is None else record.number(self.declared.column) or 0.0


def add(counts: Counter[str], name: str) -> None:
    counts[name if name in counts or len(counts) < MOST_NAMES else OTHERS] += 1
