"""The result of appending a batch."""

from typing import NamedTuple

from odradek.log.producer_entry import ProducerBatch
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_OFFSET, NO_TIMESTAMP


class AppendResult(NamedTuple):
    """`log_append_time_ms` is -1 unless the topic stamps its records; a duplicate has the offsets of the original."""

    error: ErrorCode
    base_offset: int = NO_OFFSET
    last_offset: int = NO_OFFSET
    log_append_time_ms: int = NO_TIMESTAMP
    is_duplicate: bool = False


CONVERT_FIRST = AppendResult(ErrorCode.UNKNOWN_SERVER_ERROR)
"""Compared by identity: nothing was appended, because a worker must convert the batch first."""


def not_appended(verdict: ErrorCode | ProducerBatch, has_append_time: bool) -> AppendResult:
    """The result for a batch that the producer state refuses, or has as a batch that was appended before."""
    if isinstance(verdict, ErrorCode):
        return AppendResult(verdict)
    append_time_ms = verdict.timestamp if has_append_time else NO_TIMESTAMP
    return AppendResult(ErrorCode.NONE, verdict.base_offset, verdict.last_offset, append_time_ms, True)
