"""One segment: a file of batches and its indexes. The newest segment of a log, the active one, is written to; older
ones are only read, with a descriptor that is opened for a read, and no index in memory."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from odradek.host.disk import Disk, File
from odradek.log.batch_scan import locate_batch, scan_checked, scan_headers
from odradek.log.read_check import breaks_off, count_sound_bytes
from odradek.log.recent_batches import LIMIT, RecentBatches
from odradek.log.stored_segment import LOG_SUFFIX, StoredSegment
from odradek.log.transaction_index import AbortedTransaction
from odradek.protocol.batch import BatchHeader
from odradek.protocol.sentinels import NO_TIMESTAMP

LARGEST_RELATIVE_OFFSET = 2**31 - 1
_NO_INDEX_ENTRIES = sys.maxsize  # as the interval between them

# For a segment that is only read: every offset is looked up in the index file.
NO_RECENT_BATCHES = RecentBatches(LARGEST_RELATIVE_OFFSET + 1)


class Segment(StoredSegment):
    __slots__ = (
        "_checked",
        "_is_torn",
        "bytes_since_index_entry",
        "created_ms",
        "first_timestamp",
        "max_timestamp",
        "next_offset",
        "offset_of_max_timestamp",
        "recent_batches",
        "roll_jitter_ms",
        "unchecked_end_position",
    )

    def __init__(self, disk: Disk, directory: str, base_offset: int) -> None:
        super().__init__(disk, directory, base_offset)
        self._is_torn = False
        self._checked = (0, 0)  # positions between which checksums were checked
        self.unchecked_end_position = 0  # an earlier run wrote what lies before, see read_check
        self.recent_batches = NO_RECENT_BATCHES
        self.next_offset = base_offset  # valid of a segment that this run has written to
        self.bytes_since_index_entry = 0
        self.first_timestamp = NO_TIMESTAMP
        self.max_timestamp = NO_TIMESTAMP
        self.offset_of_max_timestamp = base_offset
        self.created_ms = 0
        self.roll_jitter_ms = 0

    # Becoming the active segment

    def create(self) -> None:
        """Creates the file. After a failure there is none: an empty file would end the log at its name."""
        self.create_file()
        self.init_empty()

    def load_for_writing(self) -> bool:
        """Loads a segment as it was closed: only batches after the last index entry are read. False when the indexes do
        not fit the file: then the segment must be recovered."""
        self.size_bytes = self.file.size()
        if not self.offset_index.load() or not self.time_index.load() or not self.transaction_index.load():
            return False
        _, position = self.offset_index.last_entry() or (0, 0)
        if position >= self.size_bytes > 0:
            return False
        self._load_timestamps()
        return self._load_recent_batches(position)

    def _load_timestamps(self) -> None:
        timestamp, timestamp_offset = self.time_index.last_entry() or (NO_TIMESTAMP, 0)
        self.max_timestamp = timestamp
        self.offset_of_max_timestamp = self.base_offset + timestamp_offset
        first = next(scan_headers(self.file, 0, self.size_bytes), None)
        self.first_timestamp = first[1].max_timestamp if first else NO_TIMESTAMP

    def _load_recent_batches(self, position: int) -> bool:
        """Reads from the last indexed batch, at `position`, to the end; False when the file does not end with one."""
        end_position = self.size_bytes
        self.recent_batches = RecentBatches(0)
        self.bytes_since_index_entry = 0
        self.next_offset = self.base_offset
        is_first = True
        for batch_position, header in scan_headers(self.file, position, end_position):
            relative_base = header.base_offset - self.base_offset
            if relative_base < 0 or relative_base + header.last_offset_delta > LARGEST_RELATIVE_OFFSET:
                return False
            if is_first:
                self.recent_batches = RecentBatches(relative_base if position else 0)
                is_first = False
            self._publish_header(batch_position, header, _NO_INDEX_ENTRIES)
            position = self.size_bytes
        if self.unchecked_end_position:
            # Batches of an earlier run are found through the files, where their checksums are checked.
            self.recent_batches = RecentBatches(self.next_offset - self.base_offset)
        return position == end_position

    # Writing

    def append(self, batch: memoryview, last_offset: int, max_timestamp: int, index_interval_bytes: int) -> None:
        """One write; when it fails, nothing has changed and OSError says why. `_write` is inlined: this runs for every
        batch of a producer."""
        position = self.size_bytes
        file = self._file or self.file
        if self._is_torn:
            self._cut_torn_write(file)
        try:
            file.write_at(batch, position)
        except OSError:
            self._is_torn = True
            with suppress(OSError):
                self._cut_torn_write(file)
            raise
        self._publish_batch(position, len(batch), last_offset, max_timestamp, index_interval_bytes)

    def _publish_header(self, position: int, header: BatchHeader, index_interval_bytes: int) -> None:
        last_offset = header.base_offset + header.last_offset_delta
        self._publish_batch(position, header.size_bytes, last_offset, header.max_timestamp, index_interval_bytes)

    def append_run(self, batches: memoryview, headers: Sequence[BatchHeader], index_interval_bytes: int) -> None:
        """Appends neighbouring batches with one write; when it fails, nothing has changed and OSError says why."""
        position = self.size_bytes
        self._write(batches)
        for header in headers:
            self._publish_header(position, header, index_interval_bytes)
            position = self.size_bytes

    def _write(self, data: memoryview) -> None:
        file = self._file or self.file
        if self._is_torn:
            self._cut_torn_write(file)
        try:
            file.write_at(data, self.size_bytes)
        except OSError:
            self._is_torn = True
            with suppress(OSError):
                self._cut_torn_write(file)
            raise

    def _cut_torn_write(self, file: File) -> None:
        """A part of a batch must not be read as one: it is cut off when its write has failed, or before the next."""
        file.truncate(self.size_bytes)
        self._is_torn = False

    def _publish_batch(
        self, position: int, size_bytes: int, last_offset: int, max_timestamp: int, index_interval_bytes: int
    ) -> None:
        """Makes a written batch visible. Readers on worker threads depend on the order: position and `next_offset`,
        then `size_bytes`, then the timestamp. A reader that sees the size can find out that the batch lies past the
        offset that bounds it, and a reader that sees the timestamp finds the batch within the size."""
        recent_batches = self.recent_batches
        recent_batches.positions.append(position)  # before the array that is searched
        recent_batches.last_offsets.append(last_offset - self.base_offset)
        if len(recent_batches.positions) >= LIMIT:
            self.recent_batches = recent_batches.newer_half()
        self.next_offset = last_offset + 1
        self.size_bytes = position + size_bytes
        if position == 0:
            self.first_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        if self.bytes_since_index_entry > index_interval_bytes:
            self.bytes_since_index_entry = size_bytes
            self._add_index_entries(last_offset, position)
        else:
            self.bytes_since_index_entry += size_bytes

    def _add_index_entries(self, last_offset: int, position: int) -> None:
        self.offset_index.append(last_offset - self.base_offset, position)
        self.time_index.append_if_larger(self.max_timestamp, self.offset_of_max_timestamp - self.base_offset)

    def write_indexes(self) -> None:
        """Adds the segment's largest timestamp as the last time index entry, as Kafka does when it closes a segment."""
        self.time_index.append_if_larger(self.max_timestamp, self.offset_of_max_timestamp - self.base_offset)
        self.offset_index.write()
        self.time_index.write()
        self.transaction_index.write()

    def become_read_only(self) -> None:
        """After `write_indexes`: frees what only appends need."""
        self.recent_batches = NO_RECENT_BATCHES
        self.offset_index.release()
        self.time_index.release()
        self.transaction_index.release()

    @property
    def is_writable(self) -> bool:
        return self.offset_index.offsets is not None

    # Reading

    def locate(self, offset: int) -> tuple[int, int] | None:
        """The start and end position of the first batch that ends at or after `offset`; None when there is none."""
        relative_offset = offset - self.base_offset
        size_bytes = self.size_bytes
        recent_batches = self.recent_batches
        if relative_offset >= recent_batches.first_offset:
            return recent_batches.locate(relative_offset, size_bytes)
        position = self.offset_index.lookup(relative_offset)
        place = locate_batch(self.file, offset, position, size_bytes)
        if position and (place is None or place[0] == position):
            # An entry has the last offset of its batch, so the search passes that batch or ends in it.
            place = self._locate_past_damaged_entry(offset, position, place)
        self.check_not_removed()
        return place

    def _locate_past_damaged_entry(
        self, offset: int, position: int, place: tuple[int, int] | None
    ) -> tuple[int, int] | None:
        """Like `locate`, without the index unless its entry leads to a batch that begins at or before the offset."""
        header = next((header for _, header in scan_headers(self.file, position, self.size_bytes)), None)
        if header is not None and self.base_offset <= header.base_offset <= offset:
            return place
        return locate_batch(self.file, offset, 0, self.size_bytes)

    def count_sound_bytes(self, file: File, position: int, size_bytes: int) -> int:
        """How many of these bytes are whole batches with valid checksums, which may be served. Blocks."""
        checked_from, checked_to = self._checked
        if checked_from <= position and position + size_bytes <= checked_to:
            return size_bytes
        sound_bytes = count_sound_bytes(file, position, position + size_bytes)
        sound_end = position + sound_bytes
        is_adjoining = checked_from <= position <= checked_to
        self._checked = (checked_from, max(checked_to, sound_end)) if is_adjoining else (position, sound_end)
        return sound_bytes

    def breaks_off_before(self, offset: int, file: File) -> bool:
        """Whether the segment has no batch for this offset because it is damaged. Blocks."""
        if not self.unchecked_end_position:
            return False
        position = self.offset_index.lookup(offset - self.base_offset)
        return breaks_off(file, position, self.size_bytes)

    def load_max_timestamp(self) -> int:
        """The largest timestamp; of an old segment from the last entry of its time index."""
        if self.max_timestamp == NO_TIMESTAMP:
            entry = self.time_index.last_entry()
            if entry:
                self.offset_of_max_timestamp = self.base_offset + entry[1]
                self.max_timestamp = entry[0]
        return self.max_timestamp

    def newest_ms(self) -> int:
        """The largest timestamp of its records, or of its file when they have none. A header with 0 may say so of
        records without timestamps: leaders correct it, Kafka's older brokers did not. Blocks."""
        timestamp = self.load_max_timestamp()
        return timestamp if timestamp > 0 else self.disk.modified_ms(self.path(LOG_SUFFIX))

    # Truncation and recovery

    def load_cut(self, original: "Segment", offset: int, end_position: int, index_interval_bytes: int) -> None:
        """Becomes what `original`, another object for the same files, will be once `cut_file` has run: a segment that
        ends at `end_position`, where the batch that holds `offset` begins. Changes neither a file nor `original`, which
        readers may hold. Blocks."""
        self.created_ms, self.roll_jitter_ms = original.created_ms, original.roll_jitter_ms
        self.unchecked_end_position = min(original.unchecked_end_position, end_position)
        offset_index = original.offset_index.copy_before(offset - self.base_offset)
        time_index = original.time_index.copy_before(offset - self.base_offset)
        if offset_index is not None and time_index is not None:
            self.size_bytes = end_position
            self.offset_index, self.time_index = offset_index, time_index
            self._load_timestamps()
            self._load_recent_batches((offset_index.last_entry() or (0, 0))[1])
        else:
            self.init_empty()
            for position, header in scan_headers(self.file, 0, end_position):
                self._publish_header(position, header, index_interval_bytes)
        self.transaction_index = original.transaction_index.copy_before(offset)

    def cut_file(self) -> None:
        """Removes from the file the batches that this segment, after `load_cut`, does not have. Blocks."""
        self.file.truncate(self.size_bytes)

    def recover(
        self, index_interval_bytes: int, replay: Callable[[File, int, BatchHeader], AbortedTransaction | None]
    ) -> int:
        """Checks every batch, cuts the file at the first invalid one, and rebuilds the indexes. Returns how many
        bytes were cut off. `replay` is called with each batch, and returns the transaction that it has aborted."""
        self.init_empty()
        file = self.file
        file_size = file.size()
        valid_bytes = 0
        for position, header in scan_checked(file, file_size):
            if not self._accepts(header):
                break
            self._publish_header(position, header, index_interval_bytes)
            valid_bytes = position + header.size_bytes
            aborted = replay(file, position, header)
            if aborted is not None:
                self.transaction_index.append(aborted)
        if valid_bytes < file_size:
            file.truncate(valid_bytes)
        self.size_bytes = valid_bytes
        self.unchecked_end_position = 0
        self.write_indexes()
        return file_size - valid_bytes

    def init_empty(self) -> None:
        """Empties the segment in memory only: readers find no batch, and appends begin with empty indexes."""
        self.offset_index.create()
        self.time_index.create()
        self.transaction_index.create()
        self.recent_batches = RecentBatches(0)
        self.next_offset = self.base_offset
        self.bytes_since_index_entry = 0
        self.first_timestamp = self.max_timestamp = NO_TIMESTAMP
        self.offset_of_max_timestamp = self.base_offset

    def _accepts(self, header: BatchHeader) -> bool:
        return (
            header.base_offset >= self.next_offset and header.last_offset - self.base_offset <= LARGEST_RELATIVE_OFFSET
        )
