"""Segments, batches and records as `odradek log dump` shows them: rows for JSON, lines and columns for text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from odradek.cli.framework.output import faint, one_line, print_columns, say
from odradek.cli.log.segment_scan import BatchAt, SegmentSummary, codec_name
from odradek.cli.log.side_files import base_offset_of
from odradek.conventions.figures import count_text, iso_text, size_text
from odradek.record_text import text_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.protocol.records import Record


def summary_row(path: str, summary: SegmentSummary) -> dict[str, Any]:
    return {
        "base_offset": base_offset_of(path),
        "first_offset": summary.first_offset,
        "last_offset": summary.last_offset,
        "batches": summary.batches,
        "records": summary.records,
        "size_bytes": summary.size_bytes,
        "codecs": dict(summary.codecs),
        "min_time": None if summary.min_timestamp_ms is None else iso_text(summary.min_timestamp_ms),
        "max_time": None if summary.max_timestamp_ms is None else iso_text(summary.max_timestamp_ms),
    }


def summary_text(summary: SegmentSummary) -> str:
    facts = [size_text(summary.size_bytes)]
    if summary.batches:
        facts += [
            f"offsets {summary.first_offset}–{summary.last_offset}",
            count_text(summary.records, "record"),
            f"{summary.batches:,} batch{'' if summary.batches == 1 else 'es'}",
            " ".join(f"{codec}×{count}" for codec, count in summary.codecs.items()),
        ]
    if summary.min_timestamp_ms is not None and summary.max_timestamp_ms is not None:
        facts.append(f"{iso_text(summary.min_timestamp_ms)} to {iso_text(summary.max_timestamp_ms)}")
    return " · ".join(facts if summary.batches else [*facts, "no batches"])


def directory_text(summaries: Sequence[SegmentSummary]) -> str:
    records = sum(summary.records for summary in summaries)
    size_bytes = sum(summary.size_bytes for summary in summaries)
    return f"{count_text(len(summaries), 'segment')} · {count_text(records, 'record')} · {size_text(size_bytes)}"


def print_segments(summaries: Mapping[str, SegmentSummary]) -> None:
    """One row per segment."""
    rows = [
        (
            os.path.basename(path),
            summary.first_offset,
            summary.last_offset,
            summary.batches,
            summary.records,
            size_text(summary.size_bytes),
            ",".join(summary.codecs) or "–",
            "–" if summary.min_timestamp_ms is None else iso_text(summary.min_timestamp_ms),
            "–" if summary.max_timestamp_ms is None else iso_text(summary.max_timestamp_ms),
        )
        for path, summary in summaries.items()
    ]
    print_columns(["SEGMENT", "FIRST", "LAST", "BATCHES", "RECORDS", "SIZE", "CODECS", "FROM", "TO"], rows, indent="  ")


def batch_row(item: BatchAt) -> dict[str, Any]:
    header = item.header
    return {
        "position": item.position,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.record_count,
        "size_bytes": header.size_bytes,
        "codec": codec_name(header),
        "leader_epoch": header.partition_leader_epoch,
        "max_timestamp": header.max_timestamp,
        "timestamp_type": "log_append_time" if header.uses_log_append_time else "create_time",
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "delete_horizon_ms": header.delete_horizon_ms,
        "magic": header.magic,
        "crc": header.crc,
    }


def print_batches(items: Sequence[BatchAt]) -> None:
    titles = ["POSITION", "FIRST", "LAST", "RECORDS", "BYTES", "CODEC", "EPOCH", "MAX TIMESTAMP", "PRODUCER", "FLAGS"]
    rows = [
        (
            item.position,
            item.header.base_offset,
            item.header.last_offset,
            item.header.record_count,
            item.header.size_bytes,
            codec_name(item.header),
            item.header.partition_leader_epoch,
            iso_text(item.header.max_timestamp),
            producer_text(item),
            ", ".join(flags_of(item)),
        )
        for item in items
    ]
    print_columns(titles, rows, indent="  ")


def record_row(record: Record, *, with_values: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "time": iso_text(record.timestamp),
        "key_size_bytes": None if record.key is None else len(record.key),
        "value_size_bytes": None if record.value is None else len(record.value),
    }
    if with_values:
        row.update(text_fields("key", record.key))
        row.update(text_fields("value", record.value))
        row["headers"] = [{"key": name, **text_fields("value", value)} for name, value in record.headers]
    return row


def print_batch_line(item: BatchAt) -> None:
    """One batch as a line above its records."""
    header = item.header
    facts = [
        f"offsets {header.base_offset}–{header.last_offset}",
        count_text(header.record_count, "record"),
        f"{header.size_bytes:,} B",
        codec_name(header),
        f"epoch {header.partition_leader_epoch}",
    ]
    if header.producer_id >= 0:
        facts.append(f"producer {producer_text(item)}")
    say(faint(f"  batch at {item.position}: {' · '.join([*facts, *flags_of(item)])}"))


def producer_text(item: BatchAt) -> str:
    header = item.header
    if header.producer_id < 0:
        return "–"
    return f"{header.producer_id}/{header.producer_epoch} seq {header.base_sequence}"


def flags_of(item: BatchAt) -> list[str]:
    header = item.header
    named = {
        "transaction": header.is_transactional,
        "control": header.is_control,
        "append time": header.uses_log_append_time,
        "delete horizon": header.delete_horizon_ms is not None,
    }
    return [name for name, is_set in named.items() if is_set]


def print_records(rows: Sequence[dict[str, Any]], *, with_values: bool) -> None:
    titles = ["OFFSET", "TIMESTAMP", "KEY BYTES", "VALUE BYTES"]
    cells: list[list[object]] = [
        [row["offset"], row["time"], row["key_size_bytes"], row["value_size_bytes"]] for row in rows
    ]
    if with_values:
        titles += ["KEY", "VALUE", "HEADERS"]
        for row, cell in zip(rows, cells, strict=True):
            headers = ",".join(f"{header['key']}={header['value']}" for header in row["headers"])
            cell += [one_line(row["key"]), one_line(row["value"]), one_line(headers)]
    print_columns(titles, cells, indent="    ")
