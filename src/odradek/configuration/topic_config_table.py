"""Every setting of a topic in Kafka 4.3, and which broker properties are its default (`*` turns hours into ms)."""

import re

from odradek.configuration.config_table import read_table
from odradek.configuration.config_types import Value, between

_THROTTLED_REPLICA = re.compile(r"([0-9]+:[0-9]+)?", re.ASCII)


def gzip_level(value: Value) -> str | None:
    return None if value == -1 or between(1, 9)(value) is None else "Value must be between 1 and 9 or equal to -1"


def throttled_replicas(value: Value) -> str | None:
    entries = value if isinstance(value, tuple) else ()
    if entries == ("*",) or all(_THROTTLED_REPLICA.fullmatch(entry) for entry in entries):
        return None
    return "must be '*' or a list of replicas in the form [partitionId]:[brokerId],[partitionId]:[brokerId],..."


TOPIC_CONFIGS = read_table(
    """
cleanup.policy LIST delete {compact,delete} - < log.cleanup.policy
    'delete' drops old segments by age or size; 'compact' keeps the last value of each key.
compression.gzip.level INT -1 gzip-level - < compression.gzip.level
    Level used when batches are recompressed with gzip; -1 leaves it to the library.
compression.lz4.level INT 9 [1,17] - < compression.lz4.level
    Level used when batches are recompressed with lz4.
compression.type STRING producer {uncompressed,zstd,lz4,snappy,gzip,producer} - < compression.type
    Codec in which batches are stored; 'producer' keeps each batch as it arrived.
compression.zstd.level INT 3 [-131072,22] - < compression.zstd.level
    Level used when batches are recompressed with zstd.
delete.retention.ms LONG 86400000 [0,] - < log.cleaner.delete.retention.ms
    How long a compacted topic keeps the markers of deleted keys, so that readers can see the deletion.
file.delete.delay.ms LONG 60000 [0,] - < log.segment.delete.delay.ms
    How long a removed segment's files stay on disk before they are unlinked.
flush.messages LONG 9223372036854775807 [1,] - < log.flush.interval.messages
    After how many records the log is forced to disk; by default the operating system decides.
flush.ms LONG 9223372036854775807 [0,] - < log.flush.interval.ms log.flush.scheduler.interval.ms
    After how much time unflushed records are forced to disk; by default the operating system decides.
follower.replication.throttled.replicas LIST "" throttled-replicas -
    Replicas whose fetching is throttled while partitions move: partition:broker pairs, or '*' for all.
index.interval.bytes INT 4096 [0,] - < log.index.interval.bytes
    How many bytes of log lie between two entries of the offset index.
internal.segment.bytes INT - - internal
    Segment size without the lower limit of segment.bytes; for tests only.
leader.replication.throttled.replicas LIST "" throttled-replicas -
    Replicas whose serving is throttled while partitions move: partition:broker pairs, or '*' for all.
local.retention.bytes LONG -2 [-2,] - < log.local.retention.bytes
    With tiered storage, how many bytes stay on local disk; -2 follows retention.bytes.
local.retention.ms LONG -2 [-2,] - < log.local.retention.ms
    With tiered storage, how long segments stay on local disk; -2 follows retention.ms.
max.compaction.lag.ms LONG 9223372036854775807 [1,] - < log.cleaner.max.compaction.lag.ms
    How long a record may wait at most before it can be compacted away.
max.message.bytes INT 1048588 [0,] - < message.max.bytes
    The largest record batch that is accepted, after compression.
message.timestamp.after.max.ms LONG 3600000 [0,] - < log.message.timestamp.after.max.ms
    How far a record's timestamp may lie in the broker's future; not used with LogAppendTime.
message.timestamp.before.max.ms LONG 9223372036854775807 [0,] - < log.message.timestamp.before.max.ms
    How far a record's timestamp may lie in the broker's past; not used with LogAppendTime.
message.timestamp.type STRING CreateTime {CreateTime,LogAppendTime} - < log.message.timestamp.type
    Whether a record carries its producer's time (CreateTime) or the time of the append (LogAppendTime).
min.cleanable.dirty.ratio DOUBLE 0.5 [0,1] - < log.cleaner.min.cleanable.ratio
    The share of a compacted log that must be uncompacted before it is worth compacting again.
min.compaction.lag.ms LONG 0 [0,] - < log.cleaner.min.compaction.lag.ms
    How long a record is safe from compaction.
min.insync.replicas INT 1 [1,] - < min.insync.replicas
    How many in-sync replicas a write with acks=all needs.
preallocate BOOLEAN false - - < log.preallocate
    Whether a new segment's file gets its full size at once.
remote.log.copy.disable BOOLEAN false - -
    With tiered storage, stops copying segments to it while old ones stay readable.
remote.log.delete.on.disable BOOLEAN false - -
    Whether data in tiered storage is deleted when tiered storage is turned off for the topic.
remote.storage.enable BOOLEAN false - -
    Whether the topic uses tiered storage, which this broker has not.
retention.bytes LONG -1 - - < log.retention.bytes
    How large a partition may grow before its oldest segments are deleted; -1 sets no limit.
retention.ms LONG 604800000 [-1,] - < log.retention.ms log.retention.minutes*60000 log.retention.hours*3600000
    How long records are kept before their segment is deleted; -1 keeps them for ever.
segment.bytes INT 1073741824 [1048576,] - < log.segment.bytes
    The size at which a segment is closed and a new one begun.
segment.index.bytes INT 10485760 [4,] - < log.index.size.max.bytes
    The size at which a segment's index is full, which begins a new segment.
segment.jitter.ms LONG 0 [0,] - < log.roll.jitter.ms log.roll.jitter.hours*3600000
    By how much at most segment.ms is shortened at random, so that segments do not all roll at once.
segment.ms LONG 604800000 [1,] - < log.roll.ms log.roll.hours*3600000
    The age at which a segment is closed even when it is not full.
unclean.leader.election.enable BOOLEAN false - - < unclean.leader.election.enable
    Whether a replica that is not in sync may become leader when no other is left, losing records.
""",
    {"gzip-level": gzip_level, "throttled-replicas": throttled_replicas},
)
