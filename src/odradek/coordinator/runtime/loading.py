"""Rebuilds a shard from its partition, in slices that leave the event loop free for everybody else.

A compacted log means the latest value of each key and nothing else, so that is collected first, without looking into
keys or values; only what is left is replayed, in the order in which it was last written.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.protocol.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG
from odradek.protocol.errors import ErrorCode
from odradek.protocol.key_values import read_key_values
from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.coordinator.groups.group_shard import GroupShard
    from odradek.host.workers import Workers
    from odradek.log.partition_log import PartitionLog
    from odradek.replica.partition import Partition

log = get_logger(__name__)

READ_BYTES = 4 << 20
DECOMPRESSED_LIMIT_BYTES = 128 << 20
SLICE_RECORDS = 500  # a millisecond or two
# Offsets in transactions become valid with their marker; both come with transactions.
NOT_PLAIN_FLAGS = CONTROL_FLAG | TRANSACTIONAL_FLAG


async def load_shard(shard: GroupShard, partition: Partition, workers: Workers) -> int:
    """How many records stood in the log; the shard is loaded when this returns. OSError when the disk failed."""
    latest = LatestValues(f"{partition.topic}-{partition.index}")
    offset, end_offset = partition.log.log_start_offset, partition.high_watermark
    while offset < end_offset:
        data = await workers.run(_read, partition.log, offset, end_offset)
        if not data:
            break
        offset = await latest.take(data, offset)
    for number, (key, value) in enumerate(latest.values.items(), 1):
        try:
            shard.replay(key, value)
        except MalformedMessage as problem:
            log.error("a record of a group cannot be read", partition=latest.name, reason=str(problem))
        if number % SLICE_RECORDS == 0:
            await asyncio.sleep(0)
    return latest.count


def _read(partition_log: PartitionLog, offset: int, end_offset: int) -> bytes:
    records = partition_log.read(offset, READ_BYTES, end_offset, whole_first_batch=True)
    if records is ErrorCode.CORRUPT_MESSAGE:
        raise OSError(f"records at offset {offset} are damaged")
    return b"" if records is None or isinstance(records, ErrorCode) else records.read()


class LatestValues:
    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[bytes, bytes] = {}
        self.count = 0

    async def take(self, data: bytes, offset: int) -> int:
        """The whole batches at the start of `data`; the offset after them."""
        in_slice = 0
        for batch in read_key_values(data, DECOMPRESSED_LIMIT_BYTES):
            offset, attributes, pairs, problem = batch
            if problem:
                log.error("group records cannot be read", partition=self.name, reason=problem)
            if not attributes & NOT_PLAIN_FLAGS:
                self.put(pairs)
            in_slice += len(pairs) + 1
            if in_slice >= SLICE_RECORDS:
                in_slice = 0
                await asyncio.sleep(0)
        return offset

    def put(self, pairs: Sequence[tuple[bytes | None, bytes | None]]) -> None:
        values = self.values
        self.count += len(pairs)
        for key, value in pairs:
            if key is None:
                continue
            values.pop(key, None)
            if value is not None:
                values[key] = value
