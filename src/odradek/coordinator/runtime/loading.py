"""Rebuilds a state machine from its log, in slices between which the event loop serves other requests.

A compacted log means the latest value of each key and nothing else. Those values are collected first, without decoding
keys or values; only they are replayed, in the order in which they were last written.
"""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING

from odradek.coordinator.runtime.pending_transactions import PendingTransactions
from odradek.host.logs import get_logger
from odradek.protocol.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG
from odradek.protocol.control_records import ControlRecordType
from odradek.protocol.key_values import read_key_values
from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.coordinator.runtime.shard_log import ShardLog
    from odradek.coordinator.runtime.state_machine import StateMachine

log = get_logger(__name__)

DECOMPRESSED_LIMIT_BYTES = 128 << 20
SLICE_RECORDS = 500  # a millisecond or two
TRANSACTION_FLAGS = CONTROL_FLAG | TRANSACTIONAL_FLAG
COMMIT_KEY = struct.pack(">hh", 0, ControlRecordType.COMMIT)


async def replay_log(machine: StateMachine, shard_log: ShardLog, pending: PendingTransactions) -> int:
    """Replay the log to its end into a new state machine; how many records the log holds. OSError when the log cannot
    be read. The records of transactions that are open at its end are added to `pending`.

    To the log end and not to the high watermark: a new leader's log holds records that its predecessor has answered,
    and that are committed once the replicas have caught up. Answers wait until then, as always.
    """
    pending.clear()  # of an earlier attempt
    latest = LatestValues(shard_log.name, pending)
    offset = shard_log.log_start_offset
    while offset < (end_offset := shard_log.log_end_offset):
        data = await shard_log.read(offset, end_offset)
        if data is None:
            break
        next_offset = await latest.take(data, offset)
        if next_offset <= offset:
            raise OSError(f"the records of {shard_log.name} at offset {offset} have no whole batch")
        offset = next_offset
    for number, (key, value) in enumerate(latest.values.items(), 1):
        try:
            machine.replay(key, value)
        except MalformedMessage as problem:
            log.error("a coordinator record cannot be read", partition=latest.name, reason=problem)
        if number % SLICE_RECORDS == 0:
            await asyncio.sleep(0)
    return latest.count


class LatestValues:
    def __init__(self, name: str, pending: PendingTransactions | None = None) -> None:
        self.name = name
        self._pending = PendingTransactions() if pending is None else pending
        self.values: dict[bytes, bytes] = {}
        self.count = 0

    async def take(self, data: bytes, offset: int) -> int:
        """Collect the whole batches at the start of `data`; returns the offset after them."""
        in_slice = 0
        for batch in read_key_values(data, DECOMPRESSED_LIMIT_BYTES):
            offset, attributes, pairs, producer_id, problem = batch
            if problem:
                log.error("coordinator records cannot be read", partition=self.name, reason=problem)
            if attributes & TRANSACTION_FLAGS:
                self._take_transactional(attributes, pairs, producer_id)
            else:
                self.put(pairs)
                if self._pending:
                    self._pending.overwrite(key for key, _ in pairs if key is not None)
            in_slice += len(pairs) + 1
            if in_slice >= SLICE_RECORDS:
                in_slice = 0
                await asyncio.sleep(0)
        return offset

    def _take_transactional(
        self, attributes: int, pairs: Sequence[tuple[bytes | None, bytes | None]], producer_id: int
    ) -> None:
        """Records of a transaction count once its marker is read; a marker itself is no record of a coordinator."""
        if not attributes & CONTROL_FLAG:
            self.count += len(pairs)
            self._pending.add(producer_id, [(key, value) for key, value in pairs if key is not None])
        elif pairs and pairs[0][0] is not None and pairs[0][0][: len(COMMIT_KEY)] == COMMIT_KEY:
            self.put(self._pending.commit(producer_id))
        else:
            self._pending.abort(producer_id)

    def put(self, pairs: Sequence[tuple[bytes | None, bytes | None]]) -> None:
        values = self.values
        self.count += len(pairs)
        for key, value in pairs:
            if key is None:
                continue
            values.pop(key, None)
            if value is not None:
                values[key] = value
