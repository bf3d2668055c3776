"""Records of a topic: a page of them, single ones, or all in order, with limits on what is read and kept; and those
that a form writes, or copies from another topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message

from odradek.admin.cluster import Cluster, chosen_partitions, without_leader
from odradek.admin.errors import NotAuthorized
from odradek.admin.offsets import LATEST
from odradek.admin.records.record_fetcher import FetchSettings
from odradek.admin.records.record_reader import PartitionRange, RecordReader, Start, find_ranges
from odradek.console.records.record import Record, RecordPage
from odradek.conventions.dataclass import dataclass
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.admin.records.fetched_batches import FetchedRecord, UnreadableBatch

READ_TIMEOUT_S = 10.0
IDLE_MS = 3_000
PAGE_BYTES = 16 * 1024 * 1024  # of the records of a page
MOST_READ_FOR_PAGE = 4_000  # in the first windows of all partitions
WINDOW_GROWTH = 4
MOST_NAMED = 20  # partitions in a notice
NEAR_OFFSETS = 1_000  # records to replay within this distance are read together
# A page, a search and a tail decompress no more of a batch than this: many of them run at once.
SETTINGS = FetchSettings(
    decompressed_limit_bytes=32 * 1024 * 1024, max_wait_ms=50, client_id="odradek-console", offset_reset="error"
)
MOST_UNREADABLE = 3  # batches that a notice names


class NoSuchRecord(Failure):
    """The partition has no record at the offset."""


class NotAnswering(Failure):
    """A partition sent no records for a while, before its end."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A range of records: of one partition or all, from `start`: newest, oldest, offset, time, before (the newest ones
    before an offset) or end (those that arrive). With `offsets` by partition, `offset` is that of the others."""

    topic: str
    partition: int | None = None
    start: str = "newest"
    offset: int = 0
    time_ms: int = 0
    limit: int = 50
    offsets: Mapping[int, int] = field(default_factory=dict)

    @property
    def is_backward(self) -> bool:
        return self.start in ("newest", "before")

    def offset_of(self, partition: int) -> int:
        return self.offsets.get(partition, self.offset)


class Unreadable:
    """Batches that were passed over, and partitions that cannot be read; `notice` names the first ones."""

    def __init__(self) -> None:
        self.count = 0
        self.partitions: set[int] = set()  # that cannot be read
        self._first: list[str] = []

    def add(self, batch: UnreadableBatch | str) -> None:
        self.count += 1
        if len(self._first) < MOST_UNREADABLE:
            self._first.append(str(batch))

    def leave_out(self, key: tuple[str, int], failure: Failure) -> None:
        self.partitions.add(key[1])
        self.add(failure.message)

    @property
    def notice(self) -> str:
        more = f" and {self.count - len(self._first):,} more" if self.count > len(self._first) else ""
        return f"not shown: {'; '.join(self._first)}{more}" if self.count else ""


def record_of(fetched: FetchedRecord) -> Record:
    kind, timestamp_ms = fetched.timestamp()
    place = fetched.topic(), fetched.partition(), fetched.offset()
    content = fetched.key(), fetched.value(), tuple(fetched.headers())
    return Record(*place, timestamp_ms if kind else None, *content)


class ReadingRanges(NamedTuple):
    """`notice` names partitions that are left out, `uncommitted` what is behind open transactions, if anything."""

    ranges: list[PartitionRange]
    notice: str = ""
    uncommitted: str = ""


def find_reading_ranges(cluster: Cluster, reading: Reading) -> ReadingRanges:
    """The ranges from the start of a reading to the ends of its partitions; one that goes backward ends at the oldest
    records. Partitions without a leader are left out, except from those that arrive: the consumer begins at their end
    when they have one. Failure if no partition has a leader.

    Ranges end at the last stable offset: behind it the consumer receives neither records nor the end of the partition.
    """
    wanted = () if reading.partition is None else (reading.partition,)
    start = Start(from_beginning=True)  # of all ranges, some of which are cut below
    if reading.start == "offset" and not reading.offsets:
        start = Start(offset=reading.offset)
    elif reading.start in ("time", "end"):
        start = Start(from_time_ms=reading.time_ms) if reading.start == "time" else Start()
    topic = cluster.describe_topic(reading.topic)
    partitions = chosen_partitions(topic, wanted)
    leaderless = without_leader([topic])
    led = [each for each in partitions if (topic.name, each) not in leaderless]
    unled = [each for each in partitions if each not in led]
    notice = _leaderless_text(unled)
    if not led:
        raise Failure(f"topic {reading.topic}: {notice}; `odradek cluster status` shows the brokers")
    found = find_ranges(cluster, reading.topic, led, start)
    if reading.start == "before":
        found = [_ending_at(each, reading.offset_of(each.partition)) for each in found]
    elif reading.start == "offset" and reading.offsets:
        begins = {each.partition: max(each.start_offset, reading.offset_of(each.partition)) for each in found}
        found = [each._replace(start_offset=min(each.end_offset, begins[each.partition])) for each in found]
    if reading.start == "end":
        return ReadingRanges([*found, *(PartitionRange(each, LATEST, LATEST) for each in unled)])
    if cluster.properties.get("isolation.level", "").lower() == "read_uncommitted":
        return ReadingRanges(found, notice)
    stable = cluster.last_stable_offsets(reading.topic, led)
    committed = [_ending_at(each, stable[each.partition]) for each in found]
    return ReadingRanges(committed, notice, _uncommitted_text(found, committed))


def _ending_at(whole: PartitionRange, offset: int) -> PartitionRange:
    return whole._replace(end_offset=max(whole.start_offset, min(whole.end_offset, offset)))


def _uncommitted_text(found: Sequence[PartitionRange], committed: Sequence[PartitionRange]) -> str:
    count = sum(each.end_offset for each in found) - sum(each.end_offset for each in committed)
    return f"not shown: {count_text(count, 'offset')} from the first record of an open transaction on" if count else ""


def _leaderless_text(partitions: Sequence[int]) -> str:
    named = ", ".join(str(each) for each in partitions[:MOST_NAMED]) + ("…" if len(partitions) > MOST_NAMED else "")
    return f"without a leader, and not read: partition {named}" if named else ""


def split_range(whole: PartitionRange, length: int, *, is_backward: bool) -> tuple[PartitionRange, PartitionRange]:
    """The part of a range to read next, and the rest."""
    if is_backward:
        middle = max(whole.start_offset, whole.end_offset - length)
        return whole._replace(start_offset=middle), whole._replace(end_offset=middle)
    middle = min(whole.end_offset, whole.start_offset + length)
    return whole._replace(end_offset=middle), whole._replace(start_offset=middle)


class PageRead(NamedTuple):
    """`notice` says what the page lacks, `uncommitted` what is not committed. The page has all records of each
    partition between the offsets `began` and `ended`, in the direction of the reading; `is_over` if none follow."""

    records: Sequence[Record]
    notice: str = ""
    uncommitted: str = ""
    began: Mapping[int, int] = {}
    ended: Mapping[int, int] = {}
    is_over: bool = True


def read_page(
    cluster: Cluster, reading: Reading, make_record: Callable[[FetchedRecord], Record] = record_of,
    unreadable: Unreadable | None = None,
) -> PageRead:  # fmt: skip
    """At most `limit` records: the newest first, or in the order of their time from the start. The notice names
    unreadable batches, unless the caller takes them.

    A few offsets of each partition are read first, and more of the partitions of which more records may belong to the
    page: an offset may have no record, after a compaction or a transaction.
    """
    ranges, notice, uncommitted = find_reading_ranges(cluster, reading)
    order = {"is_newest_first": reading.is_backward, "is_by_offset": reading.partition is not None}
    page = RecordPage(reading.limit, PAGE_BYTES, **order)
    length = max(1, min(reading.limit, MOST_READ_FOR_PAGE // len(ranges)))
    deadline = time.monotonic() + READ_TIMEOUT_S
    passed_over = Unreadable() if unreadable is None else unreadable
    rests = {each.partition: each for each in ranges}
    problem = ""
    while unread := [each for each in rests.values() if _has_offsets(each) and page.wants_more_of(each.partition)]:
        parts = [split_range(each, length, is_backward=reading.is_backward) for each in unread]
        try:
            windows = [part for part, _rest in parts]
            for batch in _batches(cluster, reading.topic, windows, passed_over, must_reach_ends=True):
                page.add(make_record(fetched) for fetched in batch)
                if time.monotonic() > deadline:
                    raise NotAnswering(f"the records were not read within {READ_TIMEOUT_S:g} s")
        except NotAnswering as failure:
            problem = f"records may be missing: {failure.message}"
            break
        rests.update((rest.partition, rest) for _part, rest in parts)
        length *= WINDOW_GROWTH
    if page.is_cut and not problem:
        problem = f"the page is cut after {PAGE_BYTES // 2**20} MB of records"
    is_over = not page.has_left_out and not any(_has_offsets(each) for each in rests.values())
    notice = joined(notice, passed_over.notice if unreadable is None else "", problem)
    began = {each.partition: _begin_of(each, reading) for each in ranges}
    ended = {each.partition: page.end_in(each.partition, _begin_of(each, reading)) for each in rests.values()}
    return PageRead(page.records, notice, uncommitted, began, ended, is_over)


def _begin_of(whole: PartitionRange, reading: Reading) -> int:
    return whole.end_offset if reading.is_backward else whole.start_offset


def _has_offsets(whole: PartitionRange) -> bool:
    return whole.start_offset < whole.end_offset


def joined(*notices: str) -> str:
    return "; ".join(each for each in notices if each)


def read_whole_page(cluster: Cluster, reading: Reading, unreadable: Unreadable) -> Iterator[Record]:
    """The same records by partition and offset, whatever their size. Failure if some are missing."""
    page = read_page(
        cluster, reading, lambda fetched: record_of(fetched)._replace(key=None, value=None, headers=()), unreadable
    )
    count = 0
    for record in read_selected(cluster, reading.topic, [(each.partition, each.offset) for each in page.records]):
        yield record
        count += 1
    if count < len(page.records):
        missing = count_text(len(page.records) - count, "record")
        raise Failure(f"not read again: {missing}, deleted in between, or no longer sent")
    if page.notice:
        raise Failure(page.notice)


def read_record(cluster: Cluster, topic: str, partition: int, offset: int) -> Record:
    """Failure if the partition has no such record."""
    unreadable = Unreadable()
    for record in read_selected(cluster, topic, [(partition, offset)], unreadable):
        return record
    if unreadable.notice:
        raise Failure(unreadable.notice)
    reason = "it is past the end, deleted or compacted away"
    raise NoSuchRecord(f"{topic}-{partition} has no record at offset {offset}: {reason}")


def read_selected(
    cluster: Cluster, topic: str, positions: Sequence[tuple[int, int]], unreadable: Unreadable | None = None
) -> Iterator[Record]:
    """The records at these partitions and offsets that exist and can be read, by partition and offset. Failure if
    there are none for a while among batches that cannot be read."""
    partitions = cluster.choose_partitions(topic, [partition for partition, _offset in positions])
    earliest = cluster.earliest_offsets(topic, partitions)
    latest = cluster.latest_offsets(topic, partitions)
    wanted = {each for each in positions if earliest[each[0]] <= each[1] < latest[each[0]]}
    pending = sorted(wanted)
    while pending:
        partition, first = pending[0]
        last = first
        while pending and pending[0][0] == partition and pending[0][1] - last <= NEAR_OFFSETS:
            last = pending.pop(0)[1]
        window = [PartitionRange(partition, first, last + 1)]
        deadline = time.monotonic() + READ_TIMEOUT_S
        for batch in _batches(cluster, topic, window, unreadable or Unreadable()):
            for fetched in batch:
                if (partition, fetched.offset()) in wanted:
                    yield record_of(fetched)
            if batch:
                deadline = time.monotonic() + READ_TIMEOUT_S
            elif time.monotonic() > deadline:
                raise NotAnswering(f"{topic}-{partition} sent no records that can be read for {READ_TIMEOUT_S:g} s")


def scan(
    cluster: Cluster, topic: str, ranges: Sequence[PartitionRange], is_stopped: Callable[[], bool],
    unreadable: Unreadable,
) -> Iterator[list[Record]]:  # fmt: skip
    """All records of ranges, until the caller stops; empty batches while none arrive. Failure if they stop coming."""
    for batch in _batches(cluster, topic, ranges, unreadable, must_reach_ends=True):
        yield [record_of(fetched) for fetched in batch]
        if is_stopped():
            return


def follow(
    cluster: Cluster, topic: str, partition: int | None, is_stopped: Callable[[], bool], unreadable: Unreadable
) -> Iterator[list[Record]]:
    """New records in batches, until the caller stops; empty ones while no records arrive."""
    ranges = find_reading_ranges(cluster, Reading(topic, partition, "end")).ranges
    with _reader(cluster, topic, ranges, unreadable, until_end=False) as reader:
        if is_stopped():
            return
        for batch in reader.batches():
            yield [record_of(fetched) for fetched in batch]
            if is_stopped():
                return


def _reader(
    cluster: Cluster, topic: str, ranges: Sequence[PartitionRange], unreadable: Unreadable, *, until_end: bool
) -> RecordReader:
    return RecordReader(
        cluster, {topic: ranges}, until_end=until_end, idle_timeout_ms=IDLE_MS if until_end else None,
        settings=SETTINGS, on_unreadable=unreadable.add, on_failure=unreadable.leave_out,
    )  # fmt: skip


def _batches(
    cluster: Cluster, topic: str, ranges: Sequence[PartitionRange], unreadable: Unreadable, *,
    must_reach_ends: bool = False,
) -> Iterator[list[FetchedRecord]]:  # fmt: skip
    """Records of the partitions that can be read."""
    readable = [each for each in ranges if each.partition not in unreadable.partitions]
    if not any(each.start_offset < each.end_offset for each in readable):
        return
    with _reader(cluster, topic, readable, unreadable, until_end=True) as reader:
        yield from reader.batches()
        if must_reach_ends and reader.ends:
            (_topic, partition), end = min(reader.ends.items())
            raise NotAnswering(
                f"{topic}-{partition} sent no records for {IDLE_MS / 1000:g} s and was not read up to offset {end:,}"
            )


WRITE_TIMEOUT_S = 15.0
REPLAY_BYTES = 32 * 1024 * 1024  # of records that are copied at once
CHOSEN_BY_KEY = -1


class Written(NamedTuple):
    partition: int
    offset: int


class NewRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int = CHOSEN_BY_KEY


def write_records(cluster: Cluster, topic: str, records: Sequence[NewRecord]) -> list[Written]:
    """Failure unless the cluster has acknowledged all of them; it says how many it has."""
    cluster.choose_partitions(topic, [each.partition for each in records if each.partition != CHOSEN_BY_KEY])
    written: list[Written] = []
    failures: list[KafkaError] = []

    def report(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)
        else:
            written.append(Written(message.partition() or 0, message.offset() or 0))

    settings = {"linger.ms": 0, "message.timeout.ms": round(WRITE_TIMEOUT_S * 1000), "message.max.bytes": 10_000_000}
    # The partitioner of Kafka's own clients.
    producer = cluster.producer({**settings, "partitioner": "murmur2_random", "client.id": "odradek-console"})
    try:
        for each in records:
            headers: Any = list(each.headers) or None
            producer.produce(topic, each.value, each.key, each.partition, on_delivery=report, headers=headers)
    except (KafkaException, BufferError) as error:
        raise Failure(f"topic {topic}: the record was refused: {error}") from None
    deadline = time.monotonic() + WRITE_TIMEOUT_S
    while producer.flush(0.5) and time.monotonic() < deadline:
        pass
    share = f"{len(written)} of {count_text(len(records), 'record')}"
    if failures:
        failure = cluster.failure(failures[0], f"topic {topic}", "Write")
        raise failure if isinstance(failure, NotAuthorized) else Failure(f"{failure.message}; {share} were written")
    if len(written) < len(records):
        raise Failure(f"topic {topic}: the cluster has acknowledged {share} in time")
    return written


def replay(cluster: Cluster, source: str, positions: Sequence[tuple[int, int]], target: str) -> int:
    """Copy records with their keys, values and headers into another topic. Returns their number."""
    cluster.describe_topic(target)
    found: list[NewRecord] = []
    size_bytes = 0
    for each in read_selected(cluster, source, positions):
        found.append(NewRecord(each.key, each.value, each.headers))
        size_bytes += each.size_bytes
        if size_bytes > REPLAY_BYTES:
            raise Failure(f"nothing was copied: the records are larger than {REPLAY_BYTES:,} bytes; select fewer")
    if not found:
        raise Failure(f"topic {source} has none of the selected records any more")
    return len(write_records(cluster, target, found))
