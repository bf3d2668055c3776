"""Dead letters: reads them with the ledger of those that were written back, plans a redrive, and writes them back to
their source topics: the original key, value and headers, each at most once.

Records and the entries of the ledger (`pipelines/letters/ledger`) are written in one transaction, under a transactional
id that belongs to the dead-letter topic. The ledger is read after `init_transactions` has fenced every other redrive of
the topic, so that no letter is written twice, even by redrives that run at the same time.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from confluent_kafka import KafkaException, Producer

from odradek.admin.records.record_fetcher import FetchSettings
from odradek.admin.records.record_reader import PartitionRange, RecordReader
from odradek.conventions.dataclass import dataclass
from odradek.conventions.failures import Failure
from odradek.pipelines.letters import ledger as ledgers
from odradek.pipelines.letters.ledger import Ledger, Position
from odradek.pipelines.letters.letter import Letter, parse_letter

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.admin.records.fetched_batches import FetchedRecord, UnreadableBatch

MOST_LETTERS = 10_000
BY_KEY = -1


@dataclass(frozen=True, slots=True)
class Selection:
    """Dead letters of a topic: certain positions, or all that match; `ends` bounds them by partition."""

    topic: str
    positions: frozenset[Position] | None = None
    pipeline: str = ""
    step: str = ""
    reason: str = ""  # its kind
    ends: Mapping[int, int] | None = None
    limit: int = MOST_LETTERS

    def wants(self, position: Position, letter: Letter) -> bool:
        if self.positions is not None:
            return position in self.positions
        pairs = (self.pipeline, letter.pipeline), (self.step, letter.step), (self.reason, letter.kind)
        return all(wanted in {"", actual} for wanted, actual in pairs)


class FoundLetter(NamedTuple):
    position: Position
    letter: Letter
    key: bytes | None
    value: bytes | None
    timestamp_ms: int

    @property
    def size_bytes(self) -> int:
        return len(self.key or b"") + len(self.value or b"")

    @property
    def source_partition(self) -> int:
        partition = self.letter.source.partition(":")[0]
        return int(partition) if partition.isdecimal() and len(partition) < 10 else BY_KEY


@dataclass(slots=True)
class Redrive:
    """What a redrive writes, or has written, by source topic; and what it leaves out."""

    topics: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    positions: list[Position] = field(default_factory=list)
    size_bytes: int = 0
    done_before: int = 0
    without_origin: int = 0
    is_cut: bool = False  # by a limit
    unreadable: list[str] = field(default_factory=list)  # batches of dead letters, with the reason
    ends: dict[int, int] = field(default_factory=dict)

    @property
    def records(self) -> int:
        return len(self.positions)

    def as_object(self) -> dict[str, Any]:
        return {
            "records": self.records, "topics": dict(self.topics), "reasons": dict(self.reasons),
            "size_bytes": self.size_bytes, "redriven_before": self.done_before, "without_origin": self.without_origin,
            "is_cut": self.is_cut, "unreadable": self.unreadable,
        }  # fmt: skip


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


MOST_BYTES = 64 * 1024 * 1024
TRANSACTION_LETTERS = 1_000
TIMEOUT_S = 30.0


def plan_redrive(cluster: Cluster, selection: Selection, *, again: bool = False) -> Redrive:
    """What a redrive would write; nothing is changed."""
    plan, _letters = _choose(cluster, selection, read_ledger(cluster, selection.topic), again=again)
    _check_targets(cluster, plan)
    return plan


def redrive(cluster: Cluster, selection: Selection, *, again: bool = False) -> Redrive:
    """Write the letters back. Failure unless the cluster has committed all of them; it says how many it has."""
    cluster.describe_topic(selection.topic)
    if not cluster.has_topic(ledgers.TOPIC):  # the permission Create is needed for the first redrive only
        cluster.create_topic(ledgers.TOPIC, 1, configs=ledgers.TOPIC_CONFIG)
    producer = cluster.producer(
        {
            "partitioner": "murmur2_random",  # the partition that Kafka's own clients choose for a key
            "message.max.bytes": 10_000_000,
            "client.id": "odradek-redrive",
        },
        **{"transactional.id": f"odradek-redrive-{selection.topic}"},
    )
    done = 0
    try:
        producer.init_transactions(TIMEOUT_S)
        ledger = read_ledger(cluster, selection.topic)
        plan, letters = _choose(cluster, selection, ledger, again=again)
        partitions = _check_targets(cluster, plan)
        starts = cluster.earliest_offsets(selection.topic, cluster.choose_partitions(selection.topic, ()))
        for first in range(0, len(letters), TRANSACTION_LETTERS):
            part = letters[first : first + TRANSACTION_LETTERS]
            _write(producer, ledger, part, partitions, ledger.outdated(starts) if not first else [])
            done += len(part)
    except KafkaException as error:
        advice = "a redrive again repeats all of them" if again else "run it again: none of them is written twice"
        raise Failure(
            f"topic {selection.topic}: {error.args[0].str()}; {done:,} dead letters were written back, the others "
            f"may not have been; {advice}"
        ) from None
    return plan


def _write(
    producer: Producer, ledger: Ledger, letters: Sequence[FoundLetter], partitions: Mapping[str, int],
    outdated: Sequence[bytes],
) -> None:  # fmt: skip
    producer.begin_transaction()
    try:
        for each in letters:
            topic, partition = each.letter.source_topic, each.source_partition
            chosen = partition if partition < partitions[topic] else BY_KEY
            _produce(producer, topic, each.value, each.key, chosen, list(each.letter.headers))
        for key in outdated:
            _produce(producer, ledgers.TOPIC, None, key, LEDGER_PARTITION)
        for key, value in ledger.add(each.position for each in letters):
            _produce(producer, ledgers.TOPIC, value, key, LEDGER_PARTITION)
        _commit(producer)
    except KafkaException:
        with contextlib.suppress(KafkaException):  # fenced by another redrive: the coordinator has aborted it
            producer.abort_transaction(TIMEOUT_S)
        raise


def _commit(producer: Producer) -> None:
    producer.commit_transaction(TIMEOUT_S)


def _produce(
    producer: Producer, topic: str, value: bytes | None, key: bytes | None, partition: int,
    headers: Any = None,
) -> None:  # fmt: skip
    while True:
        try:
            producer.produce(topic, value, key, partition, headers=headers or None)
            return
        except BufferError:
            producer.poll(0.1)


def _choose(
    cluster: Cluster, selection: Selection, ledger: Ledger, *, again: bool
) -> tuple[Redrive, list[FoundLetter]]:
    plan = Redrive()
    letters: list[FoundLetter] = []
    for found in find_letters(cluster, selection, plan=plan, ledger=None if again else ledger):
        if not found.letter.can_be_redriven:
            plan.without_origin += 1
        elif not again and found.position in ledger:
            plan.done_before += 1
        elif len(letters) >= selection.limit or plan.size_bytes + found.size_bytes > MOST_BYTES:
            plan.is_cut = True
            break
        else:
            letters.append(found)
            plan.positions.append(found.position)
            plan.topics[found.letter.source_topic] += 1
            plan.reasons[found.letter.kind] += 1
            plan.size_bytes += found.size_bytes
    if again and plan.is_cut:
        raise Failure(
            f"topic {selection.topic} has more than {plan.records:,} such dead letters, the limit of one redrive, and "
            "writing them again begins with the oldest ones each time; select fewer: single records, or those of one "
            "pipeline, step or reason"
        )
    return plan, letters


def _check_targets(cluster: Cluster, plan: Redrive) -> dict[str, int]:
    """The number of partitions of each source topic; Failure if one does not exist."""
    return {topic: len(cluster.choose_partitions(topic, ())) for topic in plan.topics}
