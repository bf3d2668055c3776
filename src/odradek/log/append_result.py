"""What became of a batch that was to be appended."""

from odradek.protocol.errors import ErrorCode

NO_OFFSET = -1
NO_TIMESTAMP = -1


class AppendResult:
    """`log_append_time_ms` is -1 unless the topic stamps its records; a duplicate has the offsets of the original."""

    __slots__ = ("base_offset", "error", "is_duplicate", "last_offset", "log_append_time_ms")

    def __init__(
        self,
        error: ErrorCode,
        base_offset: int = NO_OFFSET,
        last_offset: int = NO_OFFSET,
        log_append_time_ms: int = NO_TIMESTAMP,
        is_duplicate: bool = False,
    ) -> None:
        self.error = error
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.is_duplicate = is_duplicate

    def __repr__(self) -> str:
        return f"AppendResult({self.error.name}, {self.base_offset}, {self.last_offset})"
