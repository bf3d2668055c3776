"""The producer snapshots of one partition: one at the base offset of each segment and one where the log was closed.
A snapshot that a crash tore has a wrong checksum: it is removed, and an older one is used."""

from collections.abc import Callable, Iterable

from odradek.host.disk import Disk, File
from odradek.log.producer_snapshot import SNAPSHOT_SUFFIX, decode_snapshot, encode_snapshot
from odradek.log.producer_state import ProducerState
from odradek.log.stored_segment import file_path
from odradek.protocol.malformed import MalformedMessage


class SnapshotFiles:
    __slots__ = ("_directory", "_disk", "_is_read_only", "_unsynced", "offsets", "unreadable_count")

    def __init__(self, disk: Disk, directory: str, offsets: Iterable[int], *, is_read_only: bool = False) -> None:
        """`is_read_only` for a check of files that a broker may use: unreadable snapshots are not removed."""
        self._is_read_only = is_read_only
        self._disk = disk
        self._directory = directory
        self.offsets = sorted(offsets)
        self.unreadable_count = 0
        self._unsynced: list[int] = []

    def relocate(self, directory: str) -> None:
        """The directory of the log was renamed."""
        self._directory = directory

    def path(self, offset: int) -> str:
        return file_path(self._directory, offset, SNAPSHOT_SUFFIX)

    def write(self, producers: ProducerState, offset: int) -> None:
        """Writes a snapshot, which is durable only after `sync`: a roll happens on the event loop."""
        data = encode_snapshot(producers.entries.summaries())
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
            return  # removed concurrently
        sync_file(file)

    def load_newest(self, producers: ProducerState, end_offset: int) -> bool:
        """Loads the newest valid snapshot at or before `end_offset`, or no producers when there is none. False then."""
        for offset in reversed(self.offsets):
            if offset > end_offset:
                continue
            try:
                producers.replace(decode_snapshot(self._disk.read_file(self.path(offset)), offset), offset)
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
                # The offset is removed before the file, so that a `sync` on a worker can tell why the file is missing.
                self.offsets = [kept for kept in self.offsets if kept != offset]
                if not self._is_read_only:
                    self._disk.remove(self.path(offset))

    def remove_after(self, end_offset: int) -> None:
        self.remove(offset for offset in self.offsets if offset > end_offset)

    def remove_stray(self, base_offsets: Iterable[int]) -> None:
        """Removes all snapshots but the newest and those at the base offsets of segments."""
        kept = {*base_offsets, *self.offsets[-1:]}
        self.remove(offset for offset in self.offsets if offset not in kept)
