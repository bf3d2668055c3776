"""The start offset of each leader epoch (KIP-101), and Kafka's `leader-epoch-checkpoint` file.

The file is not rewritten when an epoch begins: that would put an fsync, or an unsafe write, on the append path.
`PartitionLog.flush` writes it durably before the recovery point moves past the epoch's first batch, and recovery finds
epochs that began after the recovery point in the batch headers."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.sentinels import NO_EPOCH, NO_OFFSET

FILE_NAME = "leader-epoch-checkpoint"
_VERSION = 0


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochs:
    """Epochs and start offsets both increase from entry to entry."""

    __slots__ = ("entries", "is_dirty", "latest_epoch")

    def __init__(self, entries: Sequence[EpochEntry] = ()) -> None:
        self.entries = tuple(entries)
        self.latest_epoch = self.entries[-1].epoch if self.entries else NO_EPOCH
        self.is_dirty = False

    def copy(self) -> "LeaderEpochs":
        """The same entries, for another file, which does not have them."""
        copied = LeaderEpochs(self.entries)
        copied.is_dirty = True
        return copied

    def assign(self, epoch: int, start_offset: int) -> None:
        """A later epoch begins at this offset. An epoch that is not later than the latest changes nothing."""
        if epoch <= self.latest_epoch:
            return
        # An epoch in which no batch was written is replaced by the new one.
        kept = tuple(entry for entry in self.entries if entry.start_offset < start_offset)
        self._set((*kept, EpochEntry(epoch, start_offset)))

    def follow(self, epoch: int, start_offset: int) -> None:
        """A follower appends a batch of the leader at its log end, `start_offset`. The batch decides: an epoch that
        begins here or later has no batch in this log, for example because this replica led in it and wrote nothing."""
        if epoch < self.latest_epoch:
            self.truncate_from_end(start_offset)
        self.assign(epoch, start_offset)

    def epoch_at(self, offset: int) -> int:
        index = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset)
        return self.entries[index - 1].epoch if index else NO_EPOCH

    def end_offset(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch at or below `epoch`, and its end offset; (-1, -1) when that is unknown."""
        if epoch == NO_EPOCH:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        index = bisect_right(self.entries, epoch, key=lambda entry: entry.epoch)
        if index == len(self.entries):
            return NO_EPOCH, NO_OFFSET
        # Before the first known epoch, Kafka returns the requested epoch.
        return (self.entries[index - 1].epoch if index else epoch), self.entries[index].start_offset

    def truncate_from_end(self, end_offset: int) -> None:
        if self.entries and self.entries[-1].start_offset >= end_offset:
            self._set(tuple(entry for entry in self.entries if entry.start_offset < end_offset))

    def truncate_from_start(self, start_offset: int) -> None:
        """The epoch that holds `start_offset` begins there; earlier epochs are removed."""
        index = bisect_right(self.entries, start_offset, key=lambda entry: entry.start_offset)
        if index == 0 or (index == 1 and self.entries[0].start_offset == start_offset):
            return
        self._set((EpochEntry(self.entries[index - 1].epoch, start_offset), *self.entries[index:]))

    def clear(self) -> None:
        self._set(())

    def _set(self, entries: tuple[EpochEntry, ...]) -> None:
        self.entries = entries
        self.latest_epoch = entries[-1].epoch if entries else NO_EPOCH
        self.is_dirty = True


def encode_leader_epochs(entries: Sequence[EpochEntry]) -> bytes:
    lines = [str(_VERSION), str(len(entries))]
    lines += [f"{entry.epoch} {entry.start_offset}" for entry in entries]
    return ("\n".join(lines) + "\n").encode()


def decode_leader_epochs(data: bytes) -> list[EpochEntry]:
    try:
        lines = data.decode("ascii").splitlines()
        version, count = int(lines[0]), int(lines[1])
        entries = [EpochEntry(int(epoch), int(offset)) for epoch, offset in (line.split() for line in lines[2:])]
    except (ValueError, IndexError) as error:
        raise MalformedMessage(f"not a leader epoch checkpoint: {error}") from error
    if version != _VERSION or count != len(entries):
        raise MalformedMessage(
            f"a leader epoch checkpoint of version {version} with {count} entries has {len(entries)}"
        )
    return entries
