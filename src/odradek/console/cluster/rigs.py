"""The thread that follows the topics of the rigs example, while somebody looks at its page."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from odradek.admin.records.consume_range import Start, find_ranges
from odradek.admin.records.record_fetcher import FetchSettings
from odradek.console.cluster.permissions import needs
from odradek.console.cluster.records import record_of
from odradek.console.cluster.topic_watch import LARGEST_BATCH_BYTES, TopicWatch
from odradek.console.models.rigs import FOLLOWED, RigModel, parse_record
from odradek.pipelines.examples.folders import find_example
from odradek.pipelines.examples.live_view.loading import load_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster import Cluster
    from odradek.admin.records.fetched_batches import FetchedRecord
    from odradek.admin.records.record_fetcher import RecordFetcher
    from odradek.console.records.preparation import Preparation
    from odradek.pipelines.examples.live_view.definition import ViewDefinition
    from odradek.pipelines.examples.live_view.records import SeenRecord

HISTORY_S = 60.0  # read at first
DISCOVER_S = 1.0
POLL_S = 0.25
MOST_RECORDS_PER_S = 10_000  # of a topic with more, those that are too old for the page are passed over
TOO_OLD_S = HISTORY_S + 15.0
SETTINGS = FetchSettings(LARGEST_BATCH_BYTES, max_wait_ms=100, client_id="odradek-console", offset_reset="latest")


class RigWatch(TopicWatch[RigModel]):
    """Follows those of the example's topics that exist; `prepare` comes before the first `reading`."""

    name = "rig-watch"
    unwatched_s = 60.0
    retry_s = 2.0

    def __init__(self, cluster: Cluster, prepare: Preparation) -> None:
        super().__init__(cluster)
        self.has_topic = False  # in the last snapshot that a page has used
        self._prepare = prepare
        self._view: ViewDefinition | None = None

    def prepare(self) -> None:
        """Loads the definition of the example; blocks."""
        if self._view is None:
            self._view = load_view(find_example("rigs").view, {})

    def _new_model(self) -> RigModel:
        assert self._view is not None
        return RigModel(self._view)

    def _follow(self) -> None:
        followed: set[str] = set()
        discovered_at = budget_at = float("-inf")
        budget = 0
        with self._fetching(SETTINGS) as fetcher:
            while not self._is_unwanted():
                now = time.monotonic()
                if now - discovered_at >= DISCOVER_S:
                    discovered_at = now
                    if len(followed) < len(FOLLOWED):
                        self._discover(fetcher, followed)
                if now - budget_at >= 1.0:
                    budget_at, budget = now, MOST_RECORDS_PER_S
                if not followed or budget <= 0:
                    self._is_stopped.wait(POLL_S)
                    continue
                parsed = self._parse(self._fetch(fetcher, POLL_S))
                budget -= len(parsed)
                with self._lock:
                    for record, time_s in parsed:
                        if self._model is not None:
                            self._model.take(record, time_s)

    def _parse(self, fetched: Sequence[FetchedRecord]) -> list[tuple[SeenRecord, float]]:
        """Decoded and masked records with their times, without those that are too old for the page."""
        oldest_s = time.time() - TOO_OLD_S
        parsed = []
        for each in fetched:
            time_s = each.timestamp()[1] / 1000
            if time_s >= oldest_s:
                record = self._prepare(record_of(each))
                parsed.append((parse_record(record.topic, record.key, record.value), time_s))
        return parsed

    def _discover(self, fetcher: RecordFetcher, followed: set[str]) -> None:
        """Assigns topics that exist and are not followed, from the last minute on."""
        since_ms = round((time.time() - HISTORY_S) * 1000)
        for topic in FOLLOWED:
            if topic in followed or not self._cluster.has_topic(topic):
                continue
            with needs("Describe", f"topic {topic}"):
                partitions = self._cluster.choose_partitions(topic, ())
                ranges = find_ranges(self._cluster, topic, partitions, Start(from_time_ms=since_ms))
            fetcher.assign(((topic, each.partition), each.start_offset) for each in ranges)
            followed.add(topic)
