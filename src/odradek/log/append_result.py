"""The result of appending a batch."""

from typing import NamedTuple

from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_OFFSET, NO_TIMESTAMP


class AppendResult(NamedTuple):
    """`log_append_time_ms` is -1 unless the topic stamps its records; a duplicate has the offsets of the original."""

    error: ErrorCode
    base_offset: int = NO_OFFSET
    last_offset: int = NO_OFFSET
    log_append_time_ms: int = NO_TIMESTAMP
    is_duplicate: bool = False
