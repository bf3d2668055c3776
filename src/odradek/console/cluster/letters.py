"""Dead letters of pipelines: those that a page lists."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.letters.letter_reading import find_letters, read_ledger
from odradek.admin.letters.redrive_plan import MOST_LETTERS, FoundLetter, Redrive, Selection
from odradek.admin.letters.redriving import plan_redrive, redrive
from odradek.console.cluster.records import Unreadable

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

__all__ = ["MOST_LETTERS", "FoundLetter", "Redrive", "Selection", "plan_redrive", "redrive"]

SHOWN_LETTERS = 200
READ_LETTERS = 2_000  # the newest of all partitions, the same number of each
LEAST_OF_PARTITION = 20
READ_BYTES = 64 * 1024 * 1024
LONGEST_VALUE = 16 * 1024


class ListedLetter(NamedTuple):
    found: FoundLetter
    is_redriven: bool


class ListedLetters(NamedTuple):
    """The newest dead letters of a selection, newest first; `found` of them in all. `notice` names unreadable
    batches."""

    letters: list[ListedLetter]
    found: int
    notice: str


def list_letters(cluster: Cluster, selection: Selection) -> ListedLetters:
    """Only so many records are read, and long values are cut: a dead letter may be as large as any record."""
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
        newest.append(ListedLetter(short, each.position in ledger))
        if len(newest) >= 2 * SHOWN_LETTERS:
            newest = _newest(newest)
        if size_bytes > READ_BYTES:
            break
    return ListedLetters(_newest(newest), found, unreadable.notice)


def _newest(letters: list[ListedLetter]) -> list[ListedLetter]:
    return sorted(letters, key=lambda each: (each.found.timestamp_ms, each.found.position), reverse=True)[
        :SHOWN_LETTERS
    ]
