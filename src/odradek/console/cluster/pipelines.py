"""The thread that follows the status topic of pipelines while somebody looks at their pages, and their dead letters."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicPartition

from odradek.cli.framework.failure import Failure
from odradek.cli.pipeline.letter_reading import find_letters, read_ledger
from odradek.cli.pipeline.redrive_plan import MOST_LETTERS, FoundLetter, Redrive, Selection
from odradek.cli.pipeline.redriving import plan_redrive, redrive
from odradek.console.cluster.permissions import needs
from odradek.console.pipelines import Pipelines
from odradek.pipelines.operating.status_record import TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.cli.client.cluster import Cluster

__all__ = ["MOST_LETTERS", "FoundLetter", "Redrive", "Selection", "plan_redrive", "redrive"]

UNWATCHED_S = 120.0
RETRY_S = 3.0
POLL_S = 0.5
MOST_RECORDS = 200  # of one turn
SHOWN_LETTERS = 200
READ_LETTERS = 2_000  # the newest of all partitions, the same number of each
LEAST_OF_PARTITION = 20
READ_BYTES = 64 * 1024 * 1024
LONGEST_VALUE = 16 * 1024
CONSUMER_SETTINGS = {
    "fetch.wait.max.ms": 200,
    "queued.max.messages.kbytes": 4 * 1024,
    "auto.offset.reset": "earliest",
    "client.id": "odradek-console",
}


class PipelineWatch:
    """Starts with the first reader, and ends two minutes after the last one."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._pipelines: Pipelines | None = None
        self._wanted_until = 0.0
        self._is_caught_up = threading.Event()
        self._is_stopped = threading.Event()
        self.trouble = ""

    @contextlib.contextmanager
    def reading(self) -> Iterator[Pipelines]:
        """The pipelines, which do not change in the meantime."""
        with self._lock:
            self._wanted_until = time.monotonic() + UNWATCHED_S
            if self._pipelines is None:
                self._pipelines = Pipelines()
                if not self._is_stopped.is_set():
                    self._is_caught_up.clear()
                    threading.Thread(target=self._run, name="pipeline-watch", daemon=True).start()
            yield self._pipelines

    def wait_until_read(self, timeout_s: float) -> None:
        """Waits until the topic was read once; blocks."""
        with self.reading():
            pass
        self._is_caught_up.wait(timeout_s)

    def stop(self) -> None:
        self._is_stopped.set()

    def _is_unwanted(self) -> bool:
        """Forgets the pipelines, in one step with the question."""
        with self._lock:
            if self._is_stopped.is_set() or time.monotonic() > self._wanted_until:
                self._pipelines = None
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
            self._is_caught_up.set()
            self._is_stopped.wait(RETRY_S)

    def _follow(self) -> None:
        while not self._cluster.has_topic(TOPIC):
            self.trouble = ""
            self._is_caught_up.set()  # no pipeline has published its status
            if self._is_stopped.wait(RETRY_S) or self._is_unwanted():
                return
        start, end = self._cluster.earliest_offsets(TOPIC, [0])[0], self._cluster.latest_offsets(TOPIC, [0])[0]
        consumer = self._cluster.consumer(CONSUMER_SETTINGS)
        consumer.assign([TopicPartition(TOPIC, 0, start)])
        try:
            while not self._is_unwanted():
                if start >= end:
                    self._is_caught_up.set()
                messages = consumer.consume(MOST_RECORDS, POLL_S)
                self.trouble = ""
                with self._lock:
                    for message in messages:
                        if message.error() is None and self._pipelines is not None:
                            self._pipelines.take(message.key(), message.value())
                            start = (message.offset() or 0) + 1
        finally:
            consumer.close()


class ListedLetter:
    """A dead letter, and whether it was written back."""

    def __init__(self, found: FoundLetter, *, is_redriven: bool) -> None:
        self.found = found
        self.is_redriven = is_redriven


def list_letters(cluster: Cluster, selection: Selection) -> tuple[list[ListedLetter], int]:
    """The newest dead letters of a selection, newest first, and the number of those that were found.

    Only so many records are read, and long values are cut: a dead letter may be as large as any record.
    """
    with needs("Read", f"topic {selection.topic}"):
        return _list_letters(cluster, selection)


def _list_letters(cluster: Cluster, selection: Selection) -> tuple[list[ListedLetter], int]:
    topic = selection.topic
    partitions = cluster.choose_partitions(topic, ())
    share = max(READ_LETTERS // len(partitions), LEAST_OF_PARTITION)
    since = {each: max(0, end - share) for each, end in cluster.latest_offsets(topic, partitions).items()}
    ledger = read_ledger(cluster, topic, must_be_complete=False)
    newest: list[ListedLetter] = []
    found = size_bytes = 0
    for each in find_letters(cluster, selection, since=since):
        found += 1
        size_bytes += each.size_bytes
        short = replace(each, value=None if each.value is None else each.value[:LONGEST_VALUE])
        newest.append(ListedLetter(short, is_redriven=each.position in ledger))
        if len(newest) >= 2 * SHOWN_LETTERS:
            newest = _newest(newest)
        if size_bytes > READ_BYTES:
            break
    return _newest(newest), found


def _newest(letters: list[ListedLetter]) -> list[ListedLetter]:
    return sorted(letters, key=lambda each: (each.found.timestamp_ms, each.found.position), reverse=True)[
        :SHOWN_LETTERS
    ]
