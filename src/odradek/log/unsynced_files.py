"""What a log has written and the disk may not have yet, and making it durable.

`sync` runs on a worker while the event loop goes on: each step takes what it found, and clears a mark before it does
the work the mark asks for, so that nothing that is added meanwhile is forgotten."""

from contextlib import suppress

from odradek.host.disk import Disk
from odradek.log.leader_epochs import FILE_NAME as EPOCHS_FILE_NAME
from odradek.log.leader_epochs import LeaderEpochs, encode_leader_epochs
from odradek.log.segment import Segment
from odradek.log.snapshot_files import SnapshotFiles


class UnsyncedFiles:
    """The active segment is not in here: it is always taken for unsynced."""

    __slots__ = ("_directory", "_disk", "_is_new_directory", "_snapshots", "has_new_names", "rolled_segments")

    def __init__(
        self, disk: Disk, directory: str, snapshots: SnapshotFiles, rolled_segments: list[Segment], *, is_new: bool
    ) -> None:
        """`is_new` when the directory itself was just made, or may have been by a run that was killed."""
        self._disk = disk
        self._directory = directory
        self._snapshots = snapshots
        self.rolled_segments = rolled_segments
        self.has_new_names = self._is_new_directory = is_new

    def sync(self, active: Segment, leader_epochs: LeaderEpochs) -> None:
        """The caller has read the end of the log before it looked up which segment is active: so everything before
        that end lies in this one or in one of those that were rolled."""
        rolled = tuple(self.rolled_segments)
        for segment in rolled:
            segment.sync()
            with suppress(FileNotFoundError):  # removed meanwhile
                segment.sync_indexes()
        if active not in rolled:
            active.sync()
        self._snapshots.sync()
        self.write_leader_epochs(leader_epochs)
        self._sync_names()
        for segment in rolled:
            with suppress(ValueError):  # removed, or written to again
                self.rolled_segments.remove(segment)
                segment.release()

    def _sync_names(self) -> None:
        if self._is_new_directory:
            self._disk.sync_directory(self._directory.rpartition("/")[0] or ".")
            self._is_new_directory = False
        if self.has_new_names:
            self.has_new_names = False
            try:
                self._disk.sync_directory(self._directory)
            except BaseException:
                self.has_new_names = True
                raise

    def write_leader_epochs(self, leader_epochs: LeaderEpochs) -> None:
        if not leader_epochs.is_dirty:
            return
        leader_epochs.is_dirty = False
        self.has_new_names = False
        try:
            data = encode_leader_epochs(leader_epochs.entries)
            self._disk.replace_file(f"{self._directory}/{EPOCHS_FILE_NAME}", data)  # syncs the other names too
        except BaseException:
            leader_epochs.is_dirty = True
            self.has_new_names = True
            raise
