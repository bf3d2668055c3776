"""Reads dead letters, and the ledger of those that were written back: all committed records, or Failure."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

from confluent_kafka import KafkaException

from odradek.cli.framework.failure import Failure
from odradek.cli.pipeline.redrive_plan import FoundLetter, Redrive
from odradek.cli.records.consume_range import PartitionRange
from odradek.cli.records.record_reader import RecordReader
from odradek.pipelines.letters import ledger as ledgers
from odradek.pipelines.letters.ledger import Ledger
from odradek.pipelines.letters.letter import parse_letter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from confluent_kafka import Message

    from odradek.cli.client.cluster import Cluster
    from odradek.cli.pipeline.redrive_plan import Selection

MOST_READ = 1_000_000  # records of the dead-letter topic that one redrive looks at, without those written back before
WIDEST_GAP = 10_000  # records between selected ones that are read, too
LEDGER_PARTITION = 0  # the only one that is read, even if the topic has more
IDLE_MS = 10_000
OPEN_TRANSACTION_S = 10.0  # how long the reading of the ledger waits for the transactions of other redrives
STABLE_POLL_S = 0.1
READ_COMMITTED = {"isolation.level": "read_committed", "auto.offset.reset": "error"}  # whatever the user's properties


def find_letters(
    cluster: Cluster, selection: Selection, since: Mapping[int, int] | None = None, plan: Redrive | None = None,
    ledger: Ledger | None = None,
) -> Iterator[FoundLetter]:  # fmt: skip
    """The dead letters of a selection, by partition and offset, from the oldest on.

    The plan gets the ends of the partitions, and is cut if more records are read than the limit; those in the ledger do
    not count.
    """
    plan = plan or Redrive()
    topic = selection.topic
    partitions = cluster.choose_partitions(topic, sorted({partition for partition, _ in selection.positions or ()}))
    starts, latest = cluster.earliest_offsets(topic, partitions), cluster.latest_offsets(topic, partitions)
    plan.ends = {each: min(latest[each], (selection.ends or latest).get(each, latest[each])) for each in partitions}
    left = MOST_READ
    for span in _spans(selection, later(starts, since), plan.ends):
        for message in read_all(cluster, topic, span):
            position = span.partition, cast("int", message.offset())
            letter = parse_letter(cast("list[tuple[str, bytes | None]]", message.headers() or []))
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


def read_all(cluster: Cluster, topic: str, span: PartitionRange, *, must_be_stable: bool = False) -> Iterator[Message]:
    """All committed records of a range; Failure if the reading stops before its end.

    The reading may end at an open transaction, unless `must_be_stable`.
    """
    if span.start_offset >= span.end_offset:
        return
    try:
        with RecordReader(
            cluster, topic, [span], until_end=True, idle_timeout_ms=IDLE_MS, required=READ_COMMITTED
        ) as reader:
            for batch in reader.batches():
                yield from batch
            reached = reader.reached.get(span.partition)
    except KafkaException as error:
        raise cluster.failure(error.args[0], f"topic {topic}") from None
    if reached is None:
        raise Failure(
            f"{topic}-{span.partition} sent no records for {IDLE_MS / 1000:g} s and was not read up to offset "
            f"{span.end_offset}; run it again"
        )
    if must_be_stable and reached < span.end_offset:
        raise _open_transaction(topic, reached)


def read_ledger(cluster: Cluster, topic: str, *, must_be_complete: bool = True) -> Ledger:
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
    for message in read_all(cluster, ledgers.TOPIC, span, must_be_stable=must_be_complete):
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
