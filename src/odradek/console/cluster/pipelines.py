"""The thread that follows the status topic of pipelines while somebody looks at their pages, and their dead letters."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.errors import NoSuchTopic
from odradek.admin.letters.letter_reading import find_letters, read_ledger
from odradek.admin.letters.redrive_plan import MOST_LETTERS, FoundLetter, Redrive, Selection
from odradek.admin.letters.redriving import plan_redrive, redrive
from odradek.admin.records.record_fetcher import EARLIEST, FetchSettings
from odradek.console.cluster.permissions import needs
from odradek.console.cluster.records import Unreadable
from odradek.console.cluster.topic_watch import LARGEST_BATCH_BYTES, TopicWatch
from odradek.console.models.pipelines import Pipelines, parse_update
from odradek.pipelines.operating.status_record import TOPIC

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.admin.records.fetched_batches import FetchedRecord
    from odradek.console.models.pipelines import StatusUpdate

__all__ = ["MOST_LETTERS", "FoundLetter", "Redrive", "Selection", "plan_redrive", "redrive"]

POLL_S = 0.5
SHOWN_LETTERS = 200
READ_LETTERS = 2_000  # the newest of all partitions, the same number of each
LEAST_OF_PARTITION = 20
READ_BYTES = 64 * 1024 * 1024
LONGEST_VALUE = 16 * 1024
SETTINGS = FetchSettings(LARGEST_BATCH_BYTES, max_wait_ms=200, client_id="odradek-console", offset_reset="earliest")


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
        with self._fetching(SETTINGS) as fetcher:
            fetcher.assign([((TOPIC, 0), EARLIEST)])
            while not self._is_unwanted():
                parsed = [_parsed(record) for record in self._fetch(fetcher, POLL_S)]
                with self._lock:
                    for update in parsed:
                        if update is not None and self._model is not None:
                            with contextlib.suppress(Exception):  # one record must not hide those after it
                                self._model.take(update)

    def _has_topic(self) -> bool:
        """NotAllowed without Describe: a consumer would wait for the topic, and report no error."""
        try:
            with needs("Describe", f"topic {TOPIC}"):
                self._cluster.describe_topic(TOPIC)
        except NoSuchTopic:
            return False
        return True


def _parsed(record: FetchedRecord) -> StatusUpdate | None:
    with contextlib.suppress(Exception):
        return parse_update(record.key(), record.value())
    return None


class ListedLetter:
    """A dead letter, and whether it was written back."""

    def __init__(self, found: FoundLetter, *, is_redriven: bool) -> None:
        self.found = found
        self.is_redriven = is_redriven


class ListedLetters(NamedTuple):
    """The newest dead letters of a selection, newest first; `found` of them in all. `notice` names unreadable
    batches."""

    letters: list[ListedLetter]
    found: int
    notice: str


def list_letters(cluster: Cluster, selection: Selection) -> ListedLetters:
    """Only so many records are read, and long values are cut: a dead letter may be as large as any record."""
    with needs("Read", f"topic {selection.topic}"):
        return _list_letters(cluster, selection)


def _list_letters(cluster: Cluster, selection: Selection) -> ListedLetters:
    topic = selection.topic
    partitions = cluster.choose_partitions(topic, ())
    share = max(READ_LETTERS // len(partitions), LEAST_OF_PARTITION)
    since = {each: max(0, end - share) for each, end in cluster.latest_offsets(topic, partitions).items()}
    unreadable = Unreadable()
    ledger = read_ledger(cluster, topic, must_be_complete=False, on_unreadable=unreadable.add)
    newest: list[ListedLetter] = []
    found = size_bytes = 0
    for each in find_letters(cluster, selection, since=since, on_unreadable=unreadable.add):
        found += 1
        size_bytes += each.size_bytes
        short = replace(each, value=None if each.value is None else each.value[:LONGEST_VALUE])
        newest.append(ListedLetter(short, is_redriven=each.position in ledger))
        if len(newest) >= 2 * SHOWN_LETTERS:
            newest = _newest(newest)
        if size_bytes > READ_BYTES:
            break
    return ListedLetters(_newest(newest), found, unreadable.notice)


def _newest(letters: list[ListedLetter]) -> list[ListedLetter]:
    return sorted(letters, key=lambda each: (each.found.timestamp_ms, each.found.position), reverse=True)[
        :SHOWN_LETTERS
    ]
