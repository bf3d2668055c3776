"""The files of a log that were written and are not synced, and syncing them.

`sync` runs on a worker while the event loop appends: each step copies what it has to sync, and clears a flag before it
does the work of the flag, so that nothing that is added concurrently is lost.

A failed sync is never retried: the operating system may have dropped the writes and report success for the next sync of
the same file. What the disk holds is known only after a restart has read the files."""

import errno
from contextlib import suppress

from odradek.host.disk import Disk, File, is_refusal
from odradek.log.leader_epochs import FILE_NAME as EPOCHS_FILE_NAME
from odradek.log.leader_epochs import LeaderEpochs, encode_leader_epochs
from odradek.log.segment import Segment
from odradek.log.snapshot_files import SnapshotFiles


class UnsyncedFiles:
    """The active segment is not listed: it always counts as unsynced."""

    __slots__ = (
        "_directory",
        "_disk",
        "_is_new_directory",
        "_snapshots",
        "failure",
        "has_new_names",
        "rolled_segments",
    )

    def __init__(
        self, disk: Disk, directory: str, snapshots: SnapshotFiles, rolled_segments: list[Segment], *, is_new: bool
    ) -> None:
        """`is_new` when the directory was just created, or may have been by a run that was killed."""
        self._disk = disk
        self._directory = directory
        self._snapshots = snapshots
        self.rolled_segments = rolled_segments
        self.has_new_names = self._is_new_directory = is_new
        self.failure: OSError | None = None

    def relocate(self, directory: str) -> None:
        """The directory of the log was renamed: nothing in it is durable before its new name is."""
        self._directory = directory
        self.has_new_names = self._is_new_directory = True

    def sync(self, active: Segment, leader_epochs: LeaderEpochs) -> None:
        """The caller has read the log end before the active segment, so everything before that log end lies in `active`
        or in a rolled segment."""
        rolled = tuple(self.rolled_segments)
        for segment in rolled:
            self.sync_segment(segment)
            self.sync_indexes(segment)
        if active not in rolled:
            self.sync_segment(active)
        self._snapshots.sync(self._sync_file)
        self.write_leader_epochs(leader_epochs)
        self.sync_names()
        for segment in rolled:
            with suppress(ValueError):  # removed concurrently
                self.rolled_segments.remove(segment)
                segment.release()

    def check(self) -> None:
        """Raises OSError when a sync has failed."""
        if self.failure is not None:
            reason = self.failure.strerror or self.failure
            raise OSError(
                errno.EIO, f"{self._directory} failed to reach the disk before ({reason}): restart the broker"
            )

    def forget(self, segment: Segment) -> None:
        """The segment's files were removed, or are synced by the caller."""
        if segment in self.rolled_segments:
            self.rolled_segments.remove(segment)

    def sync_indexes(self, segment: Segment) -> None:
        try:
            files = segment.open_indexes()
        except FileNotFoundError:
            if not segment.is_removed:
                raise
            return
        for file in files:
            self._sync_file(file)

    def sync_segment(self, segment: Segment) -> None:
        try:
            file = segment.file
        except FileNotFoundError:
            if not segment.is_removed:
                raise
            return
        self._sync_file(file)

    def _sync_file(self, file: File) -> None:
        try:
            file.sync()
        except OSError as error:
            self.failure = error
            raise

    def _sync_directory(self, path: str) -> None:
        try:
            self._disk.sync_directory(path)
        except OSError as error:
            self.failure = error
            raise

    def sync_names(self) -> None:
        if self._is_new_directory:
            self._sync_directory(self._directory.rpartition("/")[0] or ".")
            self._is_new_directory = False
        if self.has_new_names:
            self.has_new_names = False
            try:
                self._sync_directory(self._directory)
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
        except BaseException as error:
            leader_epochs.is_dirty = True
            self.has_new_names = True
            # A full disk refuses to write this file, which does not affect the files that are to be synced.
            if isinstance(error, OSError) and not is_refusal(error):
                self.failure = error
            raise
