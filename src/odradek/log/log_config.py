"""The settings of one topic that its logs need, with Kafka's names and defaults."""

import enum

from odradek.conventions.dataclass import dataclass
from odradek.protocol.compression import Compression

NO_LIMIT_MS = 2**63 - 1

_COMPRESSION_TYPES = {
    "producer": None,
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


class TimestampType(enum.Enum):
    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


class ProduceValidation(enum.Enum):
    """How much of a produced batch is checked besides its header and checksum."""

    HEADER = "header"
    """Nothing."""
    BOUNDED = "bounded"
    """The first record, and that compressed records can be decompressed."""
    COMPLETE = "complete"
    """Every record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    max_message_bytes: int = 1048588
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    message_timestamp_before_max_ms: int = NO_LIMIT_MS
    message_timestamp_after_max_ms: int = 3600 * 1000
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    is_compacted: bool = False
    is_deleted: bool = True
    delete_retention_ms: int = 24 * 3600 * 1000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NO_LIMIT_MS
    min_cleanable_dirty_ratio: float = 0.5
    retention_ms: int = 7 * 24 * 3600 * 1000
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60 * 1000
    flush_messages: int = 2**63 - 1
    flush_ms: int = NO_LIMIT_MS
    min_insync_replicas: int = 1
    produce_validation: ProduceValidation = ProduceValidation.BOUNDED

    @property
    def target_compression(self) -> Compression | None:
        """The codec that every batch is stored with; None when the producer's codec is kept."""
        return _COMPRESSION_TYPES[self.compression_type]

    @property
    def decompressed_limit_bytes(self) -> int:
        """The largest decompressed size of a batch whose records the broker must read: 16 MiB with
        default settings. Kafka has no such limit. A compression ratio above 16 reaches it, and one above 8 with a
        window of zstd above 2 MiB (levels from 9 on), which takes as much memory again."""
        return max(16 * self.max_message_bytes, 1 << 20)

    @property
    def searched_limit_bytes(self) -> int:
        """The largest decompressed size of a batch that a look-up by time reads: 8 MiB with default settings."""
        return self.decompressed_limit_bytes // 2

    def compression_level(self, codec: Compression) -> int | None:
        if codec is Compression.GZIP:
            return self.compression_gzip_level
        if codec is Compression.LZ4:
            return self.compression_lz4_level
        if codec is Compression.ZSTD:
            return self.compression_zstd_level
        return None
