"""The thread that follows the topics of the rigs example, while somebody looks at its page."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicPartition

from odradek.cli.framework.failure import Failure
from odradek.cli.records.consume_range import Start, find_ranges
from odradek.console.cluster.records import record_of
from odradek.console.rigs import FOLLOWED, RigModel
from odradek.pipelines.examples.folders import find_example
from odradek.pipelines.examples.live_view.loading import load_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Consumer

    from odradek.cli.client.cluster import Cluster
    from odradek.console.preparation import Preparation
    from odradek.pipelines.examples.live_view.definition import ViewDefinition

HISTORY_S = 60.0  # read at first
UNWATCHED_S = 60.0
DISCOVER_S = 1.0
RETRY_S = 2.0
POLL_S = 0.25
MOST_RECORDS = 500  # of one turn: pages wait for the model so long
MOST_RECORDS_PER_S = 10_000  # of a topic with more, those that are too old for the page are passed over
TOO_OLD_S = HISTORY_S + 15.0
CONSUMER_SETTINGS = {
    "fetch.wait.max.ms": 100,
    "queued.max.messages.kbytes": 4 * 1024,
    "auto.offset.reset": "latest",
    "client.id": "odradek-console",
}


class RigWatch:
    """Starts with the first reader of the model, and ends a minute after the last one."""

    def __init__(self, cluster: Cluster, prepare: Preparation) -> None:
        self._cluster = cluster
        self._prepare = prepare
        self._lock = threading.Lock()
        self._view: ViewDefinition | None = None
        self._model: RigModel | None = None
        self._thread: threading.Thread | None = None
        self._wanted_until = 0.0
        self._is_stopped = threading.Event()
        self.trouble = ""

    def prepare(self) -> None:
        """Loads the definition of the example; blocks."""
        if self._view is None:
            self._view = load_view(find_example("rigs").view, {})

    @contextlib.contextmanager
    def reading(self) -> Iterator[RigModel]:
        """The model, which does not change in the meantime; `prepare` comes first."""
        assert self._view is not None
        with self._lock:
            self._wanted_until = time.monotonic() + UNWATCHED_S
            if self._model is None:
                self._model = RigModel(self._view)
            if self._thread is None and not self._is_stopped.is_set():
                self._thread = threading.Thread(target=self._run, name="rig-watch", daemon=True)
                self._thread.start()
            yield self._model

    def stop(self) -> None:
        self._is_stopped.set()

    def _is_unwanted(self) -> bool:
        """Ends the thread and forgets the model, in one step with the question."""
        with self._lock:
            if self._is_stopped.is_set() or time.monotonic() > self._wanted_until:
                self._model = self._thread = None
                return True
        return False

    def _run(self) -> None:
        while not self._is_unwanted():
            try:
                self._follow()
                return
            except (Failure, KafkaException) as error:
                self.trouble = error.message if isinstance(error, Failure) else str(error.args[0])
            except Exception as error:
                self.trouble = f"{type(error).__name__}: {error}"
            self._is_stopped.wait(RETRY_S)

    def _follow(self) -> None:
        consumer = self._cluster.consumer(CONSUMER_SETTINGS)
        followed: set[str] = set()
        discovered_at = budget_at = float("-inf")
        budget = 0
        try:
            while not self._is_unwanted():
                now = time.monotonic()
                if now - discovered_at >= DISCOVER_S:
                    discovered_at = now
                    if len(followed) < len(FOLLOWED):
                        self._discover(consumer, followed)
                if now - budget_at >= 1.0:
                    budget_at, budget = now, MOST_RECORDS_PER_S
                if not followed or budget <= 0:
                    self._is_stopped.wait(POLL_S)
                    continue
                messages = consumer.consume(MOST_RECORDS, POLL_S)
                self.trouble = ""
                oldest_s = time.time() - TOO_OLD_S
                with self._lock:
                    model = self._model
                    for message in messages:
                        time_s = message.timestamp()[1] / 1000
                        if model is None or message.error() is not None or time_s < oldest_s:
                            continue
                        budget -= 1
                        record = self._prepare(record_of(message))
                        model.take(record.topic, record.key, record.value, time_s)
        finally:
            consumer.close()

    def _discover(self, consumer: Consumer, followed: set[str]) -> None:
        """Assigns topics that exist and are not followed, from the last minute on."""
        since_ms = round((time.time() - HISTORY_S) * 1000)
        for topic in FOLLOWED:
            if topic in followed or not self._cluster.has_topic(topic):
                continue
            partitions = self._cluster.choose_partitions(topic, ())
            ranges = find_ranges(self._cluster, topic, partitions, Start(from_time_ms=since_ms))
            consumer.incremental_assign([TopicPartition(topic, each.partition, each.start_offset) for each in ranges])
            followed.add(topic)
