"""The anomalies of a history of transactions, by the names of Jepsen's Kafka tests. Pure.

Legal are records of open transactions between those of others, and gaps where a transaction was aborted.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from odradek.protocol.topic_partition import TopicPartition
from tests.transactions.history import Consumed, Ending, History, Reading, Transaction, Write


def anomalies(history: History) -> list[str]:
    """Each as `name: details`."""
    found = list(history.problems)
    for check in (
        _ends,
        _torn_transactions,
        _reads,
        _duplicates,
        _inconsistent_offsets,
        _sends,
        _readings,
        _group_offsets,
    ):
        found += check(history)
    return found


def _writes(history: History) -> dict[bytes, tuple[Transaction, Write]]:
    return {write.value: (each, write) for each in history.transactions for write in each.writes}


def _committed(history: History) -> set[bytes]:
    """What can be read at the end."""
    return {seen.value for (_, is_committed), reading in history.final.items() if is_committed for seen in reading.seen}


def _ends(history: History) -> Iterator[str]:
    for transactional_id, state in history.incomplete.items():
        yield f"hanging transaction: {transactional_id} is {state} at the end"
    for partition, (stable, end) in history.unstable.items():
        yield f"hanging transaction: last stable offset {stable} of {partition}, high watermark {end}"


def _torn_transactions(history: History) -> Iterator[str]:
    committed = _committed(history)
    for transaction in history.transactions:
        acknowledged = [write for write in transaction.writes if write.offset is not None]
        missing = [write for write in acknowledged if write.value not in committed]
        name = f"transaction {transaction.number} of {transaction.client}"
        if transaction.ending is Ending.COMMITTED:
            for write in missing:
                yield f"lost write: {write.value!r} of {name} at {write.partition} {write.offset}"
        elif transaction.ending is Ending.UNKNOWN and 0 < len(missing) < len(acknowledged):
            yield f"torn transaction: {name} without {missing[0].value!r} at {missing[0].partition}"


def _reads(history: History) -> Iterator[str]:
    writes = _writes(history)
    for reading in (*history.readings, *history.final.values()):
        for seen in reading.seen:
            if seen.value not in writes:
                yield f"unknown record: {seen.value!r} in {reading.partition} {seen.offset}"
                continue
            transaction, write = writes[seen.value]
            if write.partition != reading.partition:
                yield f"inconsistent offsets: {seen.value!r} of {write.partition} in {reading.partition}"
            if not reading.is_committed_only:
                continue
            if transaction.ending is Ending.ABORTED:
                yield f"aborted read: {seen.value!r} of transaction {transaction.number} by {reading.reader}"
            elif seen.at < transaction.commit_requested_at:
                yield f"precommitted read: {seen.value!r} of transaction {transaction.number} by {reading.reader}"


def _duplicates(history: History) -> Iterator[str]:
    """A value at two offsets, whether committed or not: producers repeat their requests with sequence numbers."""
    for reading in history.final.values():
        offsets: dict[bytes, int] = {}
        for seen in reading.seen:
            if seen.value in offsets:
                yield f"duplicate: {seen.value!r} in {reading.partition} at {offsets[seen.value]} and {seen.offset}"
            offsets[seen.value] = seen.offset


def _inconsistent_offsets(history: History) -> Iterator[str]:
    """One offset has one value, for all readers, and it is the offset that was acknowledged."""
    values: dict[tuple[TopicPartition, int], bytes] = {}
    offsets: dict[bytes, int] = {}
    for reading in (*history.final.values(), *history.readings):
        for seen in reading.seen:
            known = values.setdefault((reading.partition, seen.offset), seen.value)
            if known != seen.value:
                yield f"inconsistent offsets: {reading.partition} {seen.offset} is {known!r} and {seen.value!r}"
            offsets[seen.value] = seen.offset
    for transaction in history.transactions:
        for write in transaction.writes:
            offset = offsets.get(write.value, write.offset)
            if write.offset is not None and offset != write.offset:
                yield f"inconsistent offsets: {write.value!r} acknowledged at {write.offset}, read at {offset}"


def _sends(history: History) -> Iterator[str]:
    """The records of one client in one partition have the order in which it sent them."""
    sends: dict[tuple[str, TopicPartition], list[Write]] = defaultdict(list)
    for transaction in history.transactions:
        for write in transaction.writes:
            if write.offset is not None:
                sends[transaction.client, write.partition].append(write)
    for (client, partition), writes in sends.items():
        for before, after in pairwise(sorted(writes, key=lambda write: write.sent_at)):
            if (before.offset or 0) >= (after.offset or 0):
                yield f"nonmonotonic send: {after.value!r} of {client} is before {before.value!r} in {partition}"


def _readings(history: History) -> Iterator[str]:
    """A reader sees what can be read at the end, up to where it came, in order."""
    for reading in history.readings:
        for before, after in pairwise(reading.seen):
            if before.offset >= after.offset:
                yield f"nonmonotonic poll: {after.value!r} after {before.value!r} in {reading.partition}"
        final = history.final.get((reading.partition, reading.is_committed_only))
        if final is not None:
            yield from _skipped(reading, final)


def _skipped(reading: Reading, final: Reading) -> Iterator[str]:
    known = {seen.offset for seen in reading.seen}
    for seen in final.seen:
        if seen.offset < reading.position and seen.offset not in known:
            yield f"skipped poll: {seen.value!r} in {reading.partition} at {seen.offset} by {reading.reader}"
    offsets = {seen.offset for seen in final.seen}
    for seen in reading.seen:
        if seen.offset not in offsets:
            yield f"lost read: {seen.value!r} in {reading.partition} at {seen.offset} by {reading.reader}"


def _group_offsets(history: History) -> Iterator[str]:
    """The committed transactions have consumed each input exactly once, and the group's offset is where they end."""
    committed = _committed(history)
    consumed: dict[tuple[str, TopicPartition], list[Consumed]] = defaultdict(list)
    for transaction in history.transactions:
        is_committed = transaction.ending is Ending.COMMITTED
        if transaction.ending is Ending.UNKNOWN:
            is_committed = any(write.value in committed for write in transaction.writes)
        for each in transaction.consumed if is_committed else ():
            if each.is_acknowledged:
                consumed[each.group, each.partition].append(each)
    for (group, partition), offset in history.final_offsets.items():
        parts = sorted(consumed.pop((group, partition), ()), key=lambda each: each.first_offset)
        position = 0
        for part in parts:
            if part.first_offset != position:
                kind = "consumed twice" if part.first_offset < position else "lost offset"
                yield f"{kind}: {group} from {part.first_offset} on, after {position}"
            position = part.end_offset
        if offset != position:
            yield f"group offset: {group} has {offset}, its transactions have consumed to {position}"
