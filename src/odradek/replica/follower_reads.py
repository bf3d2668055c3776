"""Reads of consumers from a replica that does not lead (KIP-392). They end at the follower's own high watermark.

A follower does not judge whether an offset is out of range: the leader may have records that it lacks, on either side.
It answers OFFSET_NOT_AVAILABLE after its end, and sends the client to the leader before its start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.log.aborted_transactions import read_committed
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_EPOCH
from odradek.replica.fetch_result import FetchIsolation, FetchResult, find_divergence
from odradek.replica.leadership import Leadership

if TYPE_CHECKING:
    from odradek.replica.partition import Partition

_NONE = ErrorCode.NONE


def is_readable_follower(partition: Partition) -> bool:
    is_follower = partition.leadership is Leadership.FOLLOWER and partition.is_online
    return is_follower and not partition.follower_log.is_truncating


def fetch_from_follower(
    partition: Partition,
    fetch_offset: int,
    max_bytes: int,
    *,
    current_leader_epoch: int,
    last_fetched_epoch: int,
    whole_first_batch: bool,
    isolation: FetchIsolation,
) -> FetchResult:
    """Like `partition_fetch.fetch_from`, for a partition that this broker follows."""
    error = _check(partition, fetch_offset, current_leader_epoch)
    if error is not _NONE:
        return FetchResult(error)
    log = partition.log
    high_watermark, last_stable_offset = partition.high_watermark, partition.last_stable_offset
    if last_fetched_epoch not in (NO_EPOCH, partition.leader_epoch):
        diverged = find_divergence(log, fetch_offset, last_fetched_epoch, high_watermark, last_stable_offset)
        if diverged is not None:
            return diverged
    is_committed_only = isolation is FetchIsolation.TRANSACTION_COMMITTED
    end_offset = last_stable_offset if is_committed_only else high_watermark
    result = FetchResult(_NONE, high_watermark, last_stable_offset, log.log_start_offset)
    if fetch_offset >= end_offset:
        return result
    if is_committed_only:
        records, result.aborted_transactions = read_committed(
            log, fetch_offset, max_bytes, end_offset, whole_first_batch=whole_first_batch
        )
    else:
        records = log.read(fetch_offset, max_bytes, end_offset, whole_first_batch=whole_first_batch)
    if isinstance(records, ErrorCode):  # the log has changed while a worker read
        return FetchResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    result.records = records
    return result


def _check(partition: Partition, fetch_offset: int, current_leader_epoch: int) -> ErrorCode:
    if not is_readable_follower(partition):
        return partition.absence
    if current_leader_epoch not in (NO_EPOCH, partition.leader_epoch):
        is_older = current_leader_epoch < partition.leader_epoch
        return ErrorCode.FENCED_LEADER_EPOCH if is_older else ErrorCode.UNKNOWN_LEADER_EPOCH
    if fetch_offset < partition.log.log_start_offset:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.OFFSET_NOT_AVAILABLE if fetch_offset > partition.log.log_end_offset else _NONE
