"""The producer snapshots of one partition: one at the base offset of each segment and one where the log was closed.
A snapshot that a crash tore has a wrong checksum and is passed over for an older one."""

from collections.abc import Callable, Iterable

from odradek.host.disk import Disk, File
from odradek.log.producer_snapshot import SNAPSHOT_SUFFIX, decode_snapshot, encode_snapshot
from odradek.log.producer_state import ProducerState
from odradek.log.segment import file_path
from odradek.protocol.malformed import MalformedMessage


class SnapshotFiles:
    __slots__ = ("_directory", "_disk", "_unsynced", "offsets", "unreadable_count")

    def __init__(self, disk: Disk, directory: str, offsets: Iterable[int]) -> None:
        self._disk = disk
        self._directory = directory
        self.offsets = sorted(offsets)
        self.unreadable_count = 0
        self._unsynced: list[int] = []

    def path(self, offset: int) -> str:
        return file_path(self._directory, offset, SNAPSHOT_SUFFIX)

    def write(self, producers: ProducerState, offset: int) -> None:
        """Not durable before `sync`: a roll happens on the event loop."""
        data = encode_snapshot(producers.entries.items())
        file = self._disk.open(self.path(offset), create=True)
        file.write_at(data, 0)
        file.truncate(len(data))
        self._unsynced.append(offset)
        if offset not in self.offsets:
            self.offsets = sorted((*self.offsets, offset))

    def sync(self, sync_file: Callable[[File], None]) -> None:
        for offset in tuple(self._unsynced):
            if offset in self.offsets:
                self._sync_one(offset, sync_file)
            self._unsynced.remove(offset)

    def _sync_one(self, offset: int, sync_file: Callable[[File], None]) -> None:
        try:
            file = self._disk.open(self.path(offset))
        except FileNotFoundError:
            if offset in self.offsets:
                raise
            return  # removed meanwhile
        sync_file(file)

    def load_newest(self, producers: ProducerState, end_offset: int) -> bool:
        """Into `producers` the newest whole snapshot at or before `end_offset`; without one they are empty."""
        for offset in reversed(self.offsets):
            if offset > end_offset:
                continue
            try:
                producers.replace(decode_snapshot(self._disk.read_file(self.path(offset))), offset)
            except MalformedMessage:
                self.unreadable_count += 1
                self.remove([offset])
            else:
                return True
        producers.replace((), 0)
        return False

    def remove(self, offsets: Iterable[int]) -> None:
        for offset in tuple(offsets):
            if offset in self.offsets:
                # The name first: a `sync` on a worker that misses the file then knows why.
                self.offsets = [kept for kept in self.offsets if kept != offset]
                self._disk.remove(self.path(offset))

    def remove_after(self, end_offset: int) -> None:
        self.remove(offset for offset in self.offsets if offset > end_offset)

    def remove_stray(self, base_offsets: Iterable[int]) -> None:
        """All but the newest and those of segments."""
        kept = {*base_offsets, *self.offsets[-1:]}
        self.remove(offset for offset in self.offsets if offset not in kept)
