"""The chore that lets old records go: by `retention.ms` and `retention.bytes`, whole segments at a time.

First the start of each log moves, then the new starts are written down, and only then do files go: after a crash at
any instant a log starts where it did, or later, and never gives an offset twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.log.retention import expired_offset, may_have_expired
from odradek.replica.partition import Role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.host import Host
    from odradek.replica.partition import Partition
    from odradek.replica.partition_table import PartitionTable

log = get_logger(__name__)

SEGMENTS_AT_ONCE = 20  # a rename for each of their files, on the event loop


class Retention:
    name = "retention"

    def __init__(self, table: PartitionTable, host: Host) -> None:
        self._table = table
        self._host = host

    def interval_ms(self, config: BrokerConfig) -> float:
        return config.log_retention_check_interval_ms

    async def run(self, now_ms: int) -> None:
        candidates = [each for each in self._table if each.role is Role.LEADER and may_have_expired(each.log)]
        if candidates:
            expired = await self._host.workers.run(self._find_expired, candidates, now_ms)
            for partition, offset in expired:
                await self._expire(partition, offset)
            if expired and not await self._write_down_starts():
                return
        for partition in tuple(self._table):
            await remove_old_segments(partition)

    async def stop(self) -> None:
        """It runs within a round, and no round is running by now."""

    async def _write_down_starts(self) -> bool:
        try:
            await self._table.checkpoint_log_start_offsets()
        except OSError as problem:
            log.error("expired segments stay: the new starts could not be written down", reason=str(problem))
            return False
        return True

    def _find_expired(self, partitions: Sequence[Partition], now_ms: int) -> list[tuple[Partition, int]]:
        expired = []
        for partition in partitions:
            try:
                offset = expired_offset(partition.log, partition.high_watermark, now_ms)
            except OSError as problem:
                if partition.role is Role.LEADER:  # else its files went while we looked
                    _complain(partition, problem)
                continue
            if offset is not None:
                expired.append((partition, offset))
        return expired

    async def _expire(self, partition: Partition, offset: int) -> None:
        if partition.role is not Role.LEADER:  # while others were looked at
            return
        before = partition.log.log_start_offset
        try:
            partition.log.expire_to(offset)
        except OSError as problem:
            _complain(partition, problem)
            return
        log.info(
            "records expired", topic=partition.topic, partition=partition.index,
            log_start_offset=partition.log.log_start_offset, before=before,
        )  # fmt: skip
        await asyncio.sleep(0)  # others come between: thousands of logs may be due together


async def remove_old_segments(partition: Partition) -> None:
    """What lies before the start of the log, once that is written down; others come between."""
    removed = SEGMENTS_AT_ONCE
    while removed == SEGMENTS_AT_ONCE and partition.role is Role.LEADER:
        try:
            removed = partition.log.remove_segments_before_start(SEGMENTS_AT_ONCE)
        except OSError as problem:
            _complain(partition, problem)
            return
        if removed:
            await asyncio.sleep(0)


def _complain(partition: Partition, problem: OSError) -> None:
    log.error("retention failed", topic=partition.topic, partition=partition.index, reason=str(problem))
