"""Reads dead letters, and the ledger of those that were written back: all committed records, or Failure."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NoReturn

from odradek.admin.letters.redrive_plan import FoundLetter, Redrive, Selection
from odradek.admin.records.record_fetcher import FetchSettings
from odradek.admin.records.record_reader import PartitionRange, RecordReader
from odradek.conventions.failures import Failure
from odradek.pipelines.letters import ledger as ledgers
from odradek.pipelines.letters.ledger import Ledger
from odradek.pipelines.letters.letter import parse_letter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from odradek.admin.cluster import Cluster
    from odradek.admin.records.fetched_batches import FetchedRecord, UnreadableBatch

MOST_READ = 1_000_000  # records of the dead-letter topic that one redrive looks at, without those written back before
WIDEST_GAP = 10_000  # records between selected ones that are read, too
LEDGER_PARTITION = 0  # the only one that is read, even if the topic has more
IDLE_MS = 10_000
OPEN_TRANSACTION_S = 10.0  # how long the reading of the ledger waits for the transactions of other redrives
STABLE_POLL_S = 0.1
# Whatever the user's properties. The console reads dead letters, too.
READ_COMMITTED = FetchSettings(64 * 1024 * 1024, isolation_level="read_committed", offset_reset="error")


def find_letters(
    cluster: Cluster, selection: Selection, since: Mapping[int, int] | None = None, plan: Redrive | None = None,
    ledger: Ledger | None = None, on_unreadable: Callable[[UnreadableBatch], None] | None = None,
) -> Iterator[FoundLetter]:  # fmt: skip
    """The dead letters of a selection, by partition and offset, from the oldest on.

    The plan gets the ends of the partitions, and is cut if more records are read than the limit; those in the ledger do
    not count. The plan names batches that cannot be read, unless the caller takes them.
    """
    plan = plan or Redrive()
    pass_over = on_unreadable or (lambda unreadable: plan.unreadable.append(str(unreadable)))
    topic = selection.topic
    partitions = cluster.choose_partitions(topic, sorted({partition for partition, _ in selection.positions or ()}))
    starts, latest = cluster.earliest_offsets(topic, partitions), cluster.latest_offsets(topic, partitions)
    plan.ends = {each: min(latest[each], (selection.ends or latest).get(each, latest[each])) for each in partitions}
    left = MOST_READ
    for span in _spans(selection, later(starts, since), plan.ends):
        for message in read_all(cluster, topic, span, on_unreadable=pass_over):
            position = span.partition, message.offset()
            letter = parse_letter(message.headers())
            if selection.positions is not None and position not in selection.positions:
                continue
            if ledger is None or position not in ledger:
                left -= 1
            if left < 0:
                plan.is_cut = True
                return
            if letter is not None and selection.wants(position, letter):
                yield FoundLetter(position, letter, message.key(), message.value(), message.timestamp()[1])


def later(starts: Mapping[int, int], since: Mapping[int, int] | None) -> dict[int, int]:
    return {partition: max(start, (since or starts).get(partition, 0)) for partition, start in starts.items()}


def _spans(selection: Selection, starts: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[PartitionRange]:
    for partition, end in ends.items():
        if selection.positions is None:
            yield PartitionRange(partition, starts[partition], end)
        else:
            offsets = [offset for chosen, offset in selection.positions if chosen == partition]
            yield from spans_of(partition, offsets, starts[partition], end)


def spans_of(partition: int, offsets: Iterable[int], start: int, end: int) -> list[PartitionRange]:
    """The ranges with these offsets, as far as they exist. Distant offsets are read without the records between."""
    spans: list[PartitionRange] = []
    for offset in sorted(each for each in offsets if start <= each < end):
        first = offset
        if spans and offset - spans[-1].end_offset < WIDEST_GAP:
            first = spans.pop().start_offset
        spans.append(PartitionRange(partition, first, offset + 1))
    return spans


def _raise_unreadable(unreadable: UnreadableBatch) -> NoReturn:
    raise Failure(str(unreadable))


def read_all(
    cluster: Cluster, topic: str, span: PartitionRange, *, must_be_stable: bool = False,
    on_unreadable: Callable[[UnreadableBatch], None] = _raise_unreadable,
) -> Iterator[FetchedRecord]:  # fmt: skip
    """All committed records of a range; Failure if the reading stops before its end, or at a batch that cannot be read.

    The reading may end at an open transaction, unless `must_be_stable`.
    """
    if span.start_offset >= span.end_offset:
        return
    with RecordReader(
        cluster, {topic: [span]}, until_end=True, idle_timeout_ms=IDLE_MS, settings=READ_COMMITTED,
        on_unreadable=on_unreadable,
    ) as reader:  # fmt: skip
        for batch in reader.batches():
            yield from batch
        reached = reader.reached.get((topic, span.partition))
    if reached is None:
        raise Failure(
            f"{topic}-{span.partition} sent no records for {IDLE_MS / 1000:g} s and was not read up to offset "
            f"{span.end_offset}; run it again"
        )
    if must_be_stable and reached < span.end_offset:
        raise _open_transaction(topic, reached)


def read_ledger(
    cluster: Cluster, topic: str, *, must_be_complete: bool = True,
    on_unreadable: Callable[[UnreadableBatch], None] = _raise_unreadable,
) -> Ledger:  # fmt: skip
    """Which letters of a topic were written back; empty if there is no ledger.

    All dead-letter topics share the ledger. Failure if an open transaction of any redrive hides entries behind it,
    unless they may be missing.
    """
    ledger = Ledger(topic, str(cluster.describe_topic(topic).topic_id))
    if not cluster.has_topic(ledgers.TOPIC):
        return ledger
    partition = LEDGER_PARTITION
    start = cluster.earliest_offsets(ledgers.TOPIC, [partition])[partition]
    end = cluster.latest_offsets(ledgers.TOPIC, [partition])[partition]
    if must_be_complete:
        _await_stable(cluster, end)
    span = PartitionRange(partition, start, end)
    for message in read_all(cluster, ledgers.TOPIC, span, must_be_stable=must_be_complete, on_unreadable=on_unreadable):
        ledger.take(message.key(), message.value())
    return ledger


def _await_stable(cluster: Cluster, end_offset: int) -> None:
    deadline = time.monotonic() + OPEN_TRANSACTION_S
    while (stable := cluster.last_stable_offsets(ledgers.TOPIC, [LEDGER_PARTITION])[LEDGER_PARTITION]) < end_offset:
        if time.monotonic() > deadline:
            raise _open_transaction(ledgers.TOPIC, stable)
        time.sleep(STABLE_POLL_S)


def _open_transaction(topic: str, offset: int) -> Failure:
    return Failure(
        f"topic {topic} has an open transaction at offset {offset}: a redrive is running, or was ended before its "
        "commit. Run it again when that redrive has ended, or in a minute, when the broker has aborted its transaction"
    )
