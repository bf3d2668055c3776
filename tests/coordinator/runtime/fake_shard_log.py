"""A log of a shard in memory: its high watermark lags, its appends fail and its leadership ends when a test says so."""

import asyncio
from collections.abc import Callable, Sequence

from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
from odradek.coordinator.runtime.record_batches import build_coordinator_batch
from odradek.coordinator.runtime.shard_log import TransactionalWrite
from odradek.protocol.batch import assign_offset
from odradek.protocol.control_records import EndTransactionMarker
from odradek.protocol.errors import ErrorCode


class FakeShardLog:
    """`commits_at_once`: the high watermark follows the log end; otherwise `advance_high_watermark` moves it."""

    log_start_offset = 0

    def __init__(self, index: int = 0, *, commits_at_once: bool = True) -> None:
        self.index = index
        self.name = f"fake-{index}"
        self.log_directory = "/fake"
        self.is_leader = True
        self.leader_epoch = 1
        self.commits_at_once = commits_at_once
        self.records: list[CoordinatorRecord] = []
        self.batches: list[list[CoordinatorRecord]] = []
        self.error = ErrorCode.NONE
        self.successes_left = 0  # appends that succeed before the error
        self.largest_bytes = 1 << 20
        self.batch_limit_bytes = 1 << 20
        self.read_errors: list[Exception] = []  # of the next reads
        self.hangs = False  # reads do not return
        self._high_watermark = 0
        self._on_high_watermark: Callable[[int], None] | None = None
        self._on_leadership: Callable[[], None] | None = None

    def leads_in(self, leader_epoch: int) -> bool:
        return self.is_leader and self.leader_epoch == leader_epoch

    @property
    def log_end_offset(self) -> int:
        return len(self.records)

    @property
    def high_watermark(self) -> int:
        return len(self.records) if self.commits_at_once else self._high_watermark

    def append(self, records: Sequence[CoordinatorRecord], transaction: TransactionalWrite | None = None) -> ErrorCode:
        if not self.is_leader:
            return ErrorCode.NOT_COORDINATOR
        if self.error is not ErrorCode.NONE and not self.successes_left:
            return self.error
        if sum(len(each.value or b"") for each in records) > self.largest_bytes:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        self.successes_left = max(self.successes_left - 1, 0)
        self.records += records
        self.batches.append(list(records))
        return ErrorCode.NONE

    def append_marker(self, marker: EndTransactionMarker, transaction_version: int) -> ErrorCode:
        raise NotImplementedError("tests of transactions use a partition")

    async def read(self, offset: int, end_offset: int) -> bytes | None:
        """One batch at a time, so that loading has to ask again."""
        if self.hangs:
            await asyncio.get_running_loop().create_future()
        if self.read_errors:
            raise self.read_errors.pop(0)
        base_offset = 0
        for records in self.batches:
            if offset < base_offset + len(records) and base_offset < end_offset:
                batch = build_coordinator_batch(records, 0)
                assign_offset(batch, 0, base_offset, self.leader_epoch)
                return bytes(batch)
            base_offset += len(records)
        return None

    def watch(self, on_high_watermark: Callable[[int], None], on_leadership: Callable[[], None]) -> None:
        assert self._on_leadership is None, "two shards on one log"
        self._on_high_watermark, self._on_leadership = on_high_watermark, on_leadership

    def unwatch(self) -> None:
        self._on_high_watermark = self._on_leadership = None

    def advance_high_watermark(self, offset: int) -> None:
        assert self._high_watermark <= offset <= self.log_end_offset
        self._high_watermark = offset
        if self._on_high_watermark is not None:
            self._on_high_watermark(offset)

    def lose_leadership(self) -> None:
        self.is_leader = False
        if self._on_leadership is not None:
            self._on_leadership()

    def truncate_to_high_watermark(self) -> None:
        """What the next leader may have made of the log: records that were not committed are gone."""
        del self.records[self.high_watermark :]
        kept, self.batches = self.batches, []
        offset = 0
        for batch in kept:
            if part := batch[: self.log_end_offset - offset]:
                self.batches.append(part)
            offset += len(batch)

    def gain_leadership(self) -> None:
        self.leader_epoch += 1
        self.is_leader = True
