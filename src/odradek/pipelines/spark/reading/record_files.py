"""A folder of files in place of a Kafka cluster: its `bootstrap_servers` is the folder, written `file:/path`.

Records of a source are read from the files below `sources/NAME`, one file for each micro-batch, in the order of their
modification times. Records that a pipeline writes are kept below `written`, one file for each write.
"""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession

SCHEME = "file:"
RECORD_DDL = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
RECORD_SCHEMA = pa.schema([
    ("key", pa.binary()), ("value", pa.binary()), ("topic", pa.string()), ("partition", pa.int32()),
    ("offset", pa.int64()), ("timestamp", pa.timestamp("us", "UTC")), ("timestampType", pa.int32()),
    ("headers", HEADERS),
])  # fmt: skip
WRITTEN_SCHEMA = pa.schema([("topic", pa.string()), ("key", pa.binary()), ("value", pa.binary()), ("headers", HEADERS)])
FIRST_FILE_S = 1_000_000_000  # the modification time of the first file; each is a second later than the one before
ONE_FILE_PER_BATCH = {"maxFilesPerTrigger": "1"}


def folder_of(servers: str) -> Path | None:
    """The folder that stands in for a cluster; None if the servers are real."""
    return Path(servers.removeprefix(SCHEME)) if servers.startswith(SCHEME) else None


def add_batch_file(folder: Path, number: int, write: Callable[[str], object]) -> None:
    """Adds the file of a micro-batch; Spark reads files in the order of their modification times."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{number:06d}"  # Spark ignores it until it is complete
    write(str(hidden))
    os.utime(hidden, (FIRST_FILE_S + number, FIRST_FILE_S + number))
    hidden.rename(folder / f"{number:06d}")


def source_folder(folder: Path, source: str) -> Path:
    return folder / "sources" / source


def add_records(folder: Path, source: str, number: int, records: Iterable[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(list(records), RECORD_SCHEMA)
    add_batch_file(source_folder(folder, source), number, lambda path: pq.write_table(table, path))


def read_record_stream(session: SparkSession, folder: Path, source: str) -> DataFrame:
    reader = session.readStream.format("parquet").schema(RECORD_DDL).options(**ONE_FILE_PER_BATCH)
    return reader.load(str(source_folder(folder, source)))


def read_records(session: SparkSession, folder: Path, source: str) -> DataFrame:
    """The records of all micro-batches."""
    return session.read.schema(RECORD_DDL).parquet(str(source_folder(folder, source)))


def append_written(frame: DataFrame, folder: Path) -> None:
    """Adds a file with the records of a batch."""
    table = frame.select(*WRITTEN_SCHEMA.names).toArrow()
    if table.num_rows:
        target = folder / "written"
        target.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, target / f"{time.time_ns()}-{uuid.uuid4().hex}.parquet")


def written_records(folder: Path) -> list[dict[str, Any]]:
    """All records that were written, in order of their batches."""
    files = sorted((folder / "written").glob("*.parquet"))
    return [record for file in files for record in pq.read_table(file, schema=WRITTEN_SCHEMA).to_pylist()]
