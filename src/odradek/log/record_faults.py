"""The invalid records of a refused batch, and why each is invalid (KIP-467): searched for after the refusal only."""

from itertools import islice
from typing import NamedTuple

from odradek.log.log_config import LogConfig, TimestampType
from odradek.protocol.batch import HEADER_SIZE_BYTES, LOG_APPEND_TIME_FLAG, read_batch_header
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.records import Record, read_records
from odradek.protocol.sentinels import NO_TIMESTAMP

# Records are read one by one on the event loop, so only the first of a large batch are read, and not all faults are
# reported. Kafka reads all.
MOST_RECORDS_READ = 1_000
MOST_FAULTS = 100
MOST_BYTES_UNPACKED = 1 << 20


class RecordFault(NamedTuple):
    batch_index: int  # of the record in its batch, from 0
    message: str


def find_faults(batch: memoryview, config: LogConfig, now_ms: int) -> list[RecordFault]:
    """The first invalid records; none when the records cannot be read, because then the batch itself is invalid."""
    if len(batch) < HEADER_SIZE_BYTES:
        return []
    header = read_batch_header(batch)
    if config.message_timestamp_type is TimestampType.LOG_APPEND_TIME and header.attributes & LOG_APPEND_TIME_FLAG:
        message = "its timestamp is of the type LogAppendTime, which is the broker's to set"
        return [RecordFault(index, message) for index in range(min(header.record_count, MOST_FAULTS))]
    try:
        records = list(islice(read_records(batch, MOST_BYTES_UNPACKED, reads_headers=False), MOST_RECORDS_READ))
    except MalformedMessage:
        return []
    judged = ((index, _fault_of(record, config, now_ms)) for index, record in enumerate(records))
    faults = (RecordFault(index, message) for index, message in judged if message is not None)
    return list(islice(faults, MOST_FAULTS))


def _fault_of(record: Record, config: LogConfig, now_ms: int) -> str | None:
    if config.is_compacted and record.key is None:
        return "no key, in a topic that is compacted by key"
    if config.message_timestamp_type is not TimestampType.CREATE_TIME or record.timestamp == NO_TIMESTAMP:
        return None
    earliest_ms = now_ms - config.message_timestamp_before_max_ms
    latest_ms = now_ms + config.message_timestamp_after_max_ms
    if earliest_ms <= record.timestamp <= latest_ms:
        return None
    return f"timestamp {record.timestamp} is not between {max(earliest_ms, 0)} and {latest_ms}, as the topic asks"
