"""Spark's data source API: the source, its batch reader and its stream reader."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from odradek.pipelines.spark.python_source.lookup import Lookup, TopicsUnavailable
from odradek.pipelines.spark.python_source.offsets import (
    OffsetRange,
    from_json,
    limited_end_offsets,
    loss_message,
    losses,
    planned_ranges,
    to_json,
)
from odradek.pipelines.spark.python_source.options import TopicOptions
from odradek.pipelines.spark.python_source.read_limits import (
    HAS_LIMITS,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from odradek.pipelines.spark.python_source.reading import RecordsMissing, columns_of, read_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from odradek.pipelines.spark.python_source.offsets import Partition

FORMAT = "odradek"


class TopicSource(DataSource):
    """A source of topic records, with the columns of Spark's connector."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return columns_of(TopicOptions.of(self.options))

    def reader(self, schema: StructType) -> TopicReader:  # noqa: ARG002 - the schema is fixed
        return TopicReader(TopicOptions.of(self.options))

    def streamReader(self, schema: StructType) -> TopicStreamReader:  # noqa: ARG002, N802 - Spark's name
        return TopicStreamReader(TopicOptions.of(self.options))


class RangePartition(InputPartition):
    """The range that one task reads."""

    def __init__(self, wanted: OffsetRange) -> None:
        super().__init__(wanted)


class TopicReader(DataSourceReader):
    """Reads a range of each partition once."""

    def __init__(self, options: TopicOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        lookup = Lookup(self._options)
        every = existing(self._options, lookup)
        start, end = lookup.at(self._options.start, every), lookup.at(self._options.end, every)
        return [RangePartition(OffsetRange(each, start[each], end[each])) for each in every if end[each] > start[each]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark's placeholder if there is nothing to read
            return iter(())
        return read_range(self._options, partition.value)


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream whose offsets are stored in Spark's checkpoint only.

    Spark asks for the initial offset again when it replays the first batch, and the brokers' answer may have changed by
    then. So the first batch is empty: its end, which Spark stores before anything else, is the start of the stream.

    PySpark 4.1 calls `latestOffset` without arguments: the start is then the end of the last planned batch, and the
    first batch reads everything from the beginning.
    """

    def __init__(self, options: TopicOptions) -> None:
        self._options = options
        self._target: dict[Partition, int] | None = None
        self._latest: dict[Partition, int] = {}
        self._planned: dict[str, Any] = {}  # the end of the last batch that Spark has planned

    @functools.cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self._options)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable() if self._options.most is None else ReadMaxRows(self._options.most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._ends()

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        if start is None:
            return self._end_without_limits()
        if not start:
            return to_json(self._beginning())
        begun = from_json(start)
        latest = self._ends() if self._target is None else self._target
        self._latest = latest
        lost = losses(begun, latest)
        if lost and self._options.is_loss_fatal:
            raise RecordsMissing(loss_message(lost))
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return to_json(limited_end_offsets(begun, latest, most))

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return to_json(self._latest) or None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._planned = end
        begun, ended = from_json(start), from_json(end)
        if not start and not HAS_LIMITS:  # the first batch of PySpark 4.1
            begun = {each: min(self._first.get(each, 0), offset) for each, offset in ended.items()}
        return [RangePartition(each) for each in planned_ranges(begun, ended)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(self._options, partition.value)

    @functools.cached_property
    def _first(self) -> dict[Partition, int]:
        return self._beginning()

    def _end_without_limits(self) -> dict[str, Any]:
        if self._planned:
            return self.latestOffset(self._planned, self.getDefaultReadLimit())
        self._latest = self._ends()
        return to_json({each: max(offset, self._first.get(each, 0)) for each, offset in self._latest.items()})

    def _beginning(self) -> dict[Partition, int]:
        begin = self._lookup.at(self._options.start, existing(self._options, self._lookup))
        if self._target is None:
            return begin
        return {each: min(offset, self._target.get(each, 0)) for each, offset in begin.items()}

    def _ends(self) -> dict[Partition, int]:
        return self._lookup.latest(self._lookup.partitions())


def existing(options: TopicOptions, lookup: Lookup) -> list[Partition]:
    found = lookup.partitions()
    missing = sorted(set(options.topics) - {each.topic for each in found})
    if missing:
        raise TopicsUnavailable(f"topic {', '.join(missing)} does not exist")
    if not found:
        raise TopicsUnavailable(f"no topic matches {options.pattern}")
    return found
