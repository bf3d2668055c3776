"""Threads that read topics into a model while pages show it: the statuses of pipelines, and examples."""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from odradek.admin.errors import NoSuchTopic
from odradek.admin.offsets import EARLIEST
from odradek.admin.records.record_fetcher import FetchSettings, RecordFetcher
from odradek.admin.records.record_reader import Start, find_ranges
from odradek.console.cluster.connection import trouble_of
from odradek.console.cluster.records import Unreadable, joined, record_of
from odradek.console.models import ExampleModel, Pipelines, StatusUpdate, followed_topics, parse_record, parse_update
from odradek.examples.folders import packaged_examples
from odradek.examples.live_view.loading import load_view
from odradek.pipelines.operating.status_record import TOPIC

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.admin.records.fetched_batches import FetchedRecord
    from odradek.console.records.masking import DecodeAndMask
    from odradek.examples.live_view.definition import ViewDefinition
    from odradek.examples.live_view.records import SeenRecord

FIRST_READ_S = 3.0  # a page waits so long for a topic
LARGEST_BATCH_BYTES = 8 * 1024 * 1024  # when it is decompressed
SETTINGS = FetchSettings(LARGEST_BATCH_BYTES, client_id="odradek-console")
PIPELINE_SETTINGS = SETTINGS._replace(max_wait_ms=200, offset_reset="earliest")
PIPELINE_POLL_S = 0.5
LAST_RECORDS = 10_000  # of a topic are read at first
DISCOVER_S = 1.0
EXAMPLE_POLL_S = 0.25
MOST_RECORDS_PER_S = 10_000  # of a topic with more, those that are too old for the page are passed over
TOO_OLD_S = 75.0
EXAMPLE_SETTINGS = SETTINGS._replace(max_wait_ms=100, offset_reset="latest")

M = TypeVar("M")


class TopicWatch(ABC, Generic[M]):
    """Starts with the first reader of the model, and ends some time after the last one.

    The lock covers changes of the model only, and no decoding or parsing: pages take it on the event loop.
    """

    name: ClassVar[str]
    unwatched_s: ClassVar[float]
    retry_s: ClassVar[float]

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._model: M | None = None
        self._began_at = self._wanted_until = float("-inf")
        self._unreadable = Unreadable()
        self._is_caught_up = threading.Event()
        self._has_reached_end = False
        self._is_stopped = threading.Event()
        self.trouble = ""

    @abstractmethod
    def _new_model(self) -> M: ...

    @abstractmethod
    def _follow(self) -> None:
        """Reads until the watch is unwanted. An exception is shown as trouble, and followed by another call."""

    @contextlib.contextmanager
    def reading(self) -> Iterator[M]:
        """The model, which does not change within the block."""
        with self._lock:
            self._wanted_until = time.monotonic() + self.unwatched_s
            if self._model is None:
                self._model = self._new_model()
                if not self._is_stopped.is_set():
                    self._is_caught_up.clear()
                    self._began_at = time.monotonic()
                    threading.Thread(target=self._run, name=self.name, daemon=True).start()
            yield self._model

    def wait_until_read(self, timeout_s: float = FIRST_READ_S) -> None:
        """Waits for the end of a topic, or the reason why it is not read, in the first seconds of the watch; blocks."""
        with self.reading():
            remaining_s = self._began_at + timeout_s - time.monotonic()
        if remaining_s > 0:
            self._is_caught_up.wait(remaining_s)

    def stop(self) -> None:
        self._is_stopped.set()

    def _is_unwanted(self) -> bool:
        """Drops the model in one step with the question: the next reader starts another thread."""
        with self._lock:
            if self._is_stopped.is_set() or time.monotonic() > self._wanted_until:
                self._model = None
                return True
        return False

    def _run(self) -> None:
        while not self._is_unwanted():
            try:
                self._follow()
                return
            except Exception as error:
                self.trouble = trouble_of(error)
            self._is_caught_up.set()
            self._is_stopped.wait(self.retry_s)

    @contextlib.contextmanager
    def _fetching(self, settings: FetchSettings) -> Iterator[RecordFetcher]:
        self._unreadable = Unreadable()
        self._has_reached_end = False
        fetcher = RecordFetcher(self._cluster, settings, self._unreadable.add)
        try:
            yield fetcher
        finally:
            fetcher.close()

    def _fetch(self, fetcher: RecordFetcher, timeout_s: float) -> list[FetchedRecord]:
        """Records, if some have arrived. Failure for errors that are not retried: trouble until something is read."""
        if self._has_reached_end:  # the model has what was returned by the last call
            self._is_caught_up.set()
        records = fetcher.poll(timeout_s)
        is_at_end = self._has_reached_end = self._is_at_end(fetcher, records)
        if is_at_end and not records:
            self._is_caught_up.set()
        trouble = joined(fetcher.trouble, self._unreadable.notice)
        if trouble or records or is_at_end:
            self.trouble = trouble
        return records

    def _is_at_end(self, fetcher: RecordFetcher, _records: Sequence[FetchedRecord]) -> bool:
        return any(fetcher.is_at_end(key) for key in fetcher.keys)


class PipelineWatch(TopicWatch[Pipelines]):
    """Follows the status topic. Until a pipeline has published its status, the topic does not exist."""

    name = "pipeline-watch"
    unwatched_s = 120.0
    retry_s = 3.0

    def _new_model(self) -> Pipelines:
        return Pipelines()

    def _follow(self) -> None:
        while not self._has_topic():
            self.trouble = ""
            self._is_caught_up.set()
            if self._is_stopped.wait(self.retry_s) or self._is_unwanted():
                return
        with self._fetching(PIPELINE_SETTINGS) as fetcher:
            fetcher.assign([((TOPIC, 0), EARLIEST)])
            while not self._is_unwanted():
                parsed = [_parsed(record) for record in self._fetch(fetcher, PIPELINE_POLL_S)]
                with self._lock:
                    for update in parsed:
                        if update is not None and self._model is not None:
                            with contextlib.suppress(Exception):  # one record must not hide those after it
                                self._model.take(update)

    def _has_topic(self) -> bool:
        """NotAuthorized without Describe: a consumer would wait for the topic, and report no error."""
        try:
            self._cluster.describe_topic(TOPIC)
        except NoSuchTopic:
            return False
        return True


def _parsed(record: FetchedRecord) -> StatusUpdate | None:
    with contextlib.suppress(Exception):
        return parse_update(record.key(), record.value())
    return None


@functools.cache
def example_views() -> Mapping[str, ViewDefinition]:
    """The views of the packaged examples that have a page, by name; the first call reads their files."""
    found = {each.name: load_view(each.view, {}) for each in packaged_examples()}
    return {name: view for name, view in found.items() if view.readings is not None and view.figures.states is not None}


class ExampleWatch(TopicWatch[ExampleModel]):
    """Follows those of an example's topics that exist, from their last records on."""

    name = "example-watch"
    unwatched_s = 60.0
    retry_s = 2.0

    def __init__(self, cluster: Cluster, decode_and_mask: DecodeAndMask, example: str, view: ViewDefinition) -> None:
        super().__init__(cluster)
        self.example, self.view = example, view
        self.input, *_ = self._topics = followed_topics(view)
        self.has_topic = False  # in the last snapshot that a page has used
        self._decode_and_mask = decode_and_mask
        self._unread: dict[tuple[str, int], int] = {}  # the ends of partitions that are read for the first time

    def _new_model(self) -> ExampleModel:
        return ExampleModel(self.view)

    def _follow(self) -> None:
        followed: set[str] = set()
        discovered_at = budget_at = float("-inf")
        budget = 0
        with self._fetching(EXAMPLE_SETTINGS) as fetcher:
            while not self._is_unwanted():
                now = time.monotonic()
                if now - discovered_at >= DISCOVER_S:
                    discovered_at = now
                    if len(followed) < len(self._topics):
                        self._discover(fetcher, followed)
                if now - budget_at >= 1.0:
                    budget_at, budget = now, MOST_RECORDS_PER_S
                if not followed or (budget <= 0 and not self._unread):
                    self._is_stopped.wait(EXAMPLE_POLL_S)
                    continue
                parsed = self._parse(self._fetch(fetcher, EXAMPLE_POLL_S))
                budget -= len(parsed)
                with self._lock:
                    for record, time_s in parsed:
                        if self._model is not None:
                            self._model.take(record, time_s)

    def _is_at_end(self, fetcher: RecordFetcher, records: Sequence[FetchedRecord]) -> bool:
        """Whether each partition has been read to where it ended when it was found. A busy one is never at its end."""
        for each in records:
            key = (each.topic(), each.partition())
            if each.offset() >= self._unread.get(key, math.inf) - 1:
                del self._unread[key]
        self._unread = {key: end for key, end in self._unread.items() if not fetcher.is_at_end(key)}
        return not self._unread

    def _parse(self, fetched: Sequence[FetchedRecord]) -> list[tuple[SeenRecord, float]]:
        """Decoded and masked records with their times, without those that are too old for the page: a topic with more
        records than the page takes is read from the present again. What is known at first may have any age."""
        oldest_s = time.time() - TOO_OLD_S if self._is_caught_up.is_set() else -math.inf
        parsed = []
        for each in fetched:
            time_s = each.timestamp()[1] / 1000
            if time_s >= oldest_s:
                record = self._decode_and_mask(record_of(each))
                parsed.append((parse_record(record.topic, record.key, record.value), time_s))
        return parsed

    def _discover(self, fetcher: RecordFetcher, followed: set[str]) -> None:
        """Assigns topics that exist and are not followed, from their last records on."""
        for topic in self._topics:
            if topic in followed or not self._cluster.has_topic(topic):
                continue
            partitions = self._cluster.choose_partitions(topic, ())
            last = max(1, LAST_RECORDS // len(partitions))
            ranges = find_ranges(self._cluster, topic, partitions, Start(last=last))
            fetcher.assign(((topic, each.partition), each.start_offset) for each in ranges)
            self._unread |= {(topic, each.partition): each.end_offset for each in ranges}
            followed.add(topic)
