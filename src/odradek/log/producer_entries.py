"""The producers of one partition by id: those that wrote last as objects, others packed. A partition with few producers
has all of them as objects, so that its batches cost nothing more, unless the broker has many: then those that are idle
are packed in all partitions (`producer_limits`)."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from odradek.log.packed_producers import PackedProducers
from odradek.log.producer_entry import ProducerEntry, ProducerSummary
from odradek.protocol.sentinels import NO_OFFSET

RECENT_PRODUCERS = 128
"""Above this number half of them are packed, those whose last batches are the oldest in the log. Producers with an open
transaction are not counted: they are never packed."""
MOST_RECENT_PRODUCERS = 1024
"""There is room for one more for each packed producer that writes again, up to this number. A batch of a producer that
is packed costs about 15 µs instead of one: it is unpacked for the check and for the change, and packed again later. So
do most batches of a partition to which more producers than this write in turn. Ids that are used once, as a client that
invents them does, make no room."""


class ProducerEntries:
    __slots__ = ("_checked_offset", "_packed", "_recent_limit", "_room", "recent")

    def __init__(self, entries: Iterable[tuple[int, ProducerEntry]] = ()) -> None:
        self.recent: dict[int, ProducerEntry] = dict(entries)
        self._packed = PackedProducers()
        self._room = self._recent_limit = RECENT_PRODUCERS
        self._checked_offset = NO_OFFSET  # of the newest batch at the last check for idle producers
        if len(self.recent) > RECENT_PRODUCERS:
            self._pack_oldest()

    def __len__(self) -> int:
        return len(self.recent) + len(self._packed)

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self.recent or producer_id in self._packed

    def __iter__(self) -> Iterator[int]:
        yield from self.recent
        yield from self._packed

    def get(self, producer_id: int) -> ProducerEntry | None:
        """Returns an entry for reading only: a change to a packed producer would be lost. `get` itself changes nothing,
        so that a worker can read at the same time."""
        return self.recent.get(producer_id) or self._packed.get(producer_id)

    def __getitem__(self, producer_id: int) -> ProducerEntry:
        entry = self.get(producer_id)
        if entry is None:
            raise KeyError(producer_id)
        return entry

    def items(self) -> Iterator[tuple[int, ProducerEntry]]:
        return ((producer_id, self[producer_id]) for producer_id in self)

    def values(self) -> Iterator[ProducerEntry]:
        return (entry for _, entry in self.items())

    def summaries(self) -> Iterator[ProducerSummary]:
        for producer_id, entry in self.recent.items():
            yield entry.summary(producer_id)
        yield from self._packed.summaries()

    def ages(self) -> Iterator[tuple[int, int, int]]:
        """The last offset, the last timestamp and the id of each producer without an open transaction: plain tuples, at
        two thirds of the cost of summaries."""
        for producer_id, entry in self.recent.items():
            if entry.current_txn_first_offset == NO_OFFSET:
                yield entry.last_data_offset, entry.last_timestamp, producer_id
        yield from self._packed.ages()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (ProducerEntries, Mapping)):
            return NotImplemented
        return dict(self.items()) == dict(other.items())

    __hash__ = None  # type: ignore[assignment]  # values that change have no hash

    def __repr__(self) -> str:
        return f"ProducerEntries({dict(self.items())})"

    # Changing

    def get_recent(self, producer_id: int) -> ProducerEntry | None:
        """Returns an entry that the caller may change."""
        entry = self.recent.get(producer_id)
        if entry is None:
            entry = self._packed.take(producer_id)
            if entry is not None:
                self._room = min(self._room + 1, MOST_RECENT_PRODUCERS)
                self.add(producer_id, entry)
        return entry

    def add(self, producer_id: int, entry: ProducerEntry) -> None:
        if len(self.recent) >= self._recent_limit:
            self._pack_oldest()
        self.recent[producer_id] = entry

    def remove(self, producer_ids: Collection[int]) -> None:
        packed = {each for each in producer_ids if self.recent.pop(each, None) is None}
        if packed:
            self._packed.remove(packed)

    def count_idle_check(self) -> Iterator[tuple[int, int]]:
        """How many checks each producer was idle for, with this one, and its id; those with an open transaction are
        counted, and left out."""
        for producer_id, entry in self.recent.items():
            entry.idle_checks += 1
            if entry.current_txn_first_offset == NO_OFFSET:
                yield entry.idle_checks, producer_id
        yield from self._packed.count_idle_check()

    def pack_idle(self) -> None:
        """Packs producers that have written nothing since the last call, and leaves room for half as many more as have
        written."""
        idle, newest_offset, open_transactions = [], NO_OFFSET, 0
        for producer_id, entry in self.recent.items():
            offset = entry.last_data_offset
            newest_offset = max(newest_offset, offset)
            if entry.current_txn_first_offset != NO_OFFSET:
                open_transactions += 1
            elif offset <= self._checked_offset:
                idle.append(producer_id)
        self._checked_offset = newest_offset
        for producer_id in sorted(idle):
            self._packed.add(producer_id, self.recent.pop(producer_id))
        if idle:
            self.recent = dict(self.recent)  # the memory of a dictionary does not shrink when its items are removed
        written = len(self.recent) - open_transactions
        self._room = max(min(self._room, written + written // 2), RECENT_PRODUCERS)
        self._recent_limit = open_transactions + self._room

    def _pack_oldest(self) -> None:
        packable = [
            (entry.last_data_offset, producer_id)
            for producer_id, entry in self.recent.items()
            if entry.current_txn_first_offset == NO_OFFSET
        ]
        packable.sort()
        oldest = packable[: max(len(packable) - self._room // 2, 0)]
        for producer_id in sorted(producer_id for _, producer_id in oldest):
            self._packed.add(producer_id, self.recent.pop(producer_id))
        self._recent_limit = len(self.recent) + self._room // 2
