"""The model of a pipeline: sources, steps, sinks and views as immutable values that record where they were written.

YAML and decorators both produce this model; places are ignored when models are compared. Sources and steps share one
namespace: their names are the tables of SQL. The model itself validates nothing; `checks` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.definition.column_types import Array, Column, ColumnType, Primitive, Struct, columns_ddl
from odradek.pipelines.definition.places import NOWHERE, Place
from odradek.pipelines.definition.secrets import hidden
from odradek.pipelines.definition.vocabulary import (
    Connector,
    Delivery,
    Duration,
    Encoding,
    Engine,
    FileFormat,
    JoinKind,
    Late,
    LakehouseFormat,
    OnDataLoss,
    Otherwise,
    SinkMode,
    StartAt,
    StateClock,
    StreamJoinKind,
    Tombstones,
)

if TYPE_CHECKING:
    from odradek.pipelines.definition.avro_writers import WriterSchemas

Settings = Mapping[str, str]
Places = Mapping[str, Place]  # by path below a name: `from`, `window/column`, `by/hcid`
DEFAULT_BOOTSTRAP_SERVERS = "127.0.0.1:9092"


@dataclass(frozen=True, slots=True)
class NamedExpression:
    """A SQL expression and the name of the column, header or aggregate that it defines."""

    name: str
    expression: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    expression_place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PythonReference:
    """A function or a class by its import path, `package.module:name`; the folder of its file is searched first."""

    module: str
    name: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"

    @property
    def directory(self) -> str:
        """The folder of the file that names it: an included file may be in another folder than the definition."""
        return str(Path(self.place.file).parent)


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """The columns of a record; for Avro also the schema itself, and those of the records' writers."""

    columns: tuple[Column, ...]
    avro: str | None = None  # canonical JSON
    writer: str | None = None  # of records without a header, if it differs
    writers: WriterSchemas | None = None  # by the id in the record's header; None: records have no header
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    @property
    def ddl(self) -> str:
        return columns_ddl(self.columns)


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """How a record's value is converted to columns. Text has one column, `value`; bytes have `_value` only."""

    encoding: Encoding = Encoding.JSON
    schema: RecordSchema | None = None
    tombstones: Tombstones | None = None

    @property
    def tombstone_policy(self) -> Tombstones:
        """The policy of the definition; by default a record without a value is a row if its format has no columns."""
        if self.tombstones is not None:
            return self.tombstones
        return Tombstones.DROP if self.encoding in {Encoding.JSON, Encoding.AVRO} else Tombstones.ROWS


# The columns that every topic source has in addition to those of its records.
RECORD_COLUMNS = (
    Column("_key", Primitive("BINARY")),
    Column("_value", Primitive("BINARY")),
    Column(
        "_headers", Array(Struct((Column("key", Primitive("STRING")), Column("value", Primitive("BINARY")))))
    ),
    Column("_timestamp", Primitive("TIMESTAMP")),
    Column("_topic", Primitive("STRING")),
    Column("_partition", Primitive("INT")),
    Column("_offset", Primitive("BIGINT")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Watermark:
    """A watermark: events that are later than `delay` may be dropped."""

    column: str
    delay: Duration
    late: Late = Late.COUNT
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Start:
    """Where to start reading: `time_ms` (since 1970) for TIME, offsets by topic and partition for OFFSETS."""

    at: StartAt = StartAt.EARLIEST
    time_ms: int | None = None
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicOrigin:
    """Topics, given by name or by a pattern."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    start: Start = Start()
    bootstrap_servers: str | None = None  # if not the pipeline's
    kafka: Settings = field(default_factory=dict)  # settings of this source's consumer
    max_records_per_batch: int | None = None
    on_data_loss: OnDataLoss = OnDataLoss.FAIL


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """Files in a folder; as a stream, new files are read as they appear."""

    path: str
    format: FileFormat
    options: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JdbcOrigin:
    """A database table or the result of a query; never a stream."""

    url: str
    table: str | None = None
    query: str | None = None
    options: Settings = field(default_factory=dict)
    refresh: Duration | None = None  # how long its rows are cached; None: they are read in every batch


Origin = TopicOrigin | FileOrigin | JdbcOrigin


@dataclass(frozen=True, slots=True)
class Source:
    """An input of the pipeline and its columns."""

    name: str
    origin: Origin
    format: RecordFormat = RecordFormat()
    columns: tuple[NamedExpression, ...] = ()  # computed, in addition to the record's own
    watermark: Watermark | None = None
    is_stream: bool = True
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    places: Places = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Expectation:
    """A condition that the rows of a step should meet."""

    name: str
    check: str
    otherwise: Otherwise = Otherwise.WARN
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    check_place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Sql:
    """A query whose tables are sources and other steps."""

    text: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A function of one DataFrame for each input, in their order, that returns a DataFrame."""

    inputs: tuple[str, ...]
    function: PythonReference
    columns: tuple[Column, ...] | None = None  # the columns of its result, if declared
    keeps_state: bool | None = None  # over a stream; None until Spark has analysed its plan
    updates_rows: bool = False  # whether its state is an aggregation, whose rows change with later records


@dataclass(frozen=True, slots=True)
class Window:
    """A time window over a column of event time: tumbling, sliding if `slide` is set, or a session if `gap` is.

    A session ends when a group has no row for the length of the gap."""

    column: str
    size: Duration | None = None
    slide: Duration | None = None
    gap: Duration | None = None
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A row per group; with a window also `window_start` and `window_end`."""

    input: str
    aggregates: tuple[NamedExpression, ...]
    by: tuple[str, ...] = ()
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class Deduplication:
    """The first row of each key; with `within`, a key is dropped from state after that much event time."""

    input: str
    key: tuple[str, ...]
    within: Duration | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """A join with a static table on columns of the same name."""

    input: str
    table: str
    on: tuple[str, ...]
    how: JoinKind = JoinKind.INNER


@dataclass(frozen=True, slots=True)
class StreamJoin:
    """A join of two streams on columns of the same name; event times of matching rows differ by at most `within`."""

    input: str
    stream: str
    on: tuple[str, ...]
    within: Duration
    how: StreamJoinKind = StreamJoinKind.INNER


@dataclass(frozen=True, slots=True)
class KeyedState:
    """A `StatefulProcessor` by import path, run by `transformWithState` for the rows of each key."""

    input: str
    key: tuple[str, ...]
    processor: PythonReference
    timeout: Duration | None = None
    clock: StateClock = StateClock.PROCESSING
    columns: tuple[Column, ...] | None = None  # the columns of its result; if None, the class declares them


Operation = Sql | PythonFunction | Aggregation | Deduplication | Join | StreamJoin | KeyedState


@dataclass(frozen=True, slots=True)
class Step:
    """A DataFrame derived from others, and the expectations of its rows."""

    name: str
    operation: Operation
    expectations: tuple[Expectation, ...] = ()
    watermark: Watermark | None = None
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    places: Places = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """A topic; the record value is a JSON object of the columns in `value` (all if empty), or one expression."""

    topic: str
    key: str | None = None  # a SQL expression
    value: tuple[str, ...] = ()
    encoding: Encoding = Encoding.JSON  # text and bytes take exactly one expression as their value
    headers: tuple[NamedExpression, ...] = ()
    bootstrap_servers: str | None = None
    kafka: Settings = field(default_factory=dict)
    deletes: str | None = None  # a SQL condition; rows that meet it are written without a value, as tombstones


@dataclass(frozen=True, slots=True)
class FilesTarget:
    """Files, written by Spark's file sink."""

    path: str
    format: FileFormat
    partition_by: tuple[str, ...] = ()
    options: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Changes:
    """Change data: rows are changes of the row of their key, in the order of `sequence`; of equal ones the last to
    arrive counts. With `keeps_history`, a row for each change, with the time in which it was valid."""

    key: tuple[str, ...]
    sequence: str
    deletes: str | None = None  # a SQL condition; changes that meet it delete the row of their key
    keeps_history: bool = False
    remember: Duration | None = None  # how long a deletion is remembered; None: for ever


@dataclass(frozen=True, slots=True)
class TableTarget:
    """A table in the warehouse, or in another database if `url` is set.

    With `order_by`, a row replaces the one of its key unless that one has a greater value in this column.
    """

    table: str
    key: tuple[str, ...] = ()
    url: str | None = None
    order_by: str | None = None
    changes: Changes | None = None


@dataclass(frozen=True, slots=True)
class LakehouseTarget:
    """A Delta or Iceberg table, by its name in a catalog or by its folder; with a key, rows are merged."""

    format: LakehouseFormat
    table: str | None = None
    path: str | None = None
    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    changes: Changes | None = None

    @property
    def name(self) -> str:
        return self.table or self.path or ""


@dataclass(frozen=True, slots=True)
class SparkTarget:
    """Any other sink format that is available to the user's Spark."""

    format: str
    options: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConsoleTarget:
    """Rows on the screen."""


@dataclass(frozen=True, slots=True)
class PythonTarget:
    """A Python function that is called with each batch and its id."""

    function: PythonReference


Target = TopicTarget | FilesTarget | TableTarget | LakehouseTarget | SparkTarget | ConsoleTarget | PythonTarget


@dataclass(frozen=True, slots=True)
class Sink:
    """An output for the rows of a source or step."""

    name: str
    input: str
    target: Target
    mode: SinkMode = SinkMode.APPEND
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    places: Places = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LatestRows:
    """The latest row of each key by the column `order_by`, or by arrival if there is none."""

    key: tuple[str, ...]
    order_by: str | None = None


@dataclass(frozen=True, slots=True)
class RunningAggregate:
    """One row per group, updated with every batch."""

    by: tuple[str, ...]
    aggregates: tuple[NamedExpression, ...]


@dataclass(frozen=True, slots=True)
class View:
    """A table in a database that is kept up to date while the pipeline runs."""

    name: str
    input: str
    content: LatestRows | RunningAggregate | Changes
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    places: Places = field(default_factory=dict, compare=False, repr=False)
    url: str | None = None  # of another database than the warehouse


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function that SQL can call, on single values or, with `is_pandas`, on pandas Series."""

    name: str
    reference: PythonReference
    returns: ColumnType
    is_pandas: bool = False
    is_deterministic: bool = True
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    places: Places = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A whole definition."""

    name: str
    sources: tuple[Source, ...] = ()
    steps: tuple[Step, ...] = ()
    sinks: tuple[Sink, ...] = ()
    views: tuple[View, ...] = ()
    engine: Engine = Engine.STANDARD
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    bootstrap_servers: str = DEFAULT_BOOTSTRAP_SERVERS
    kafka: Settings = field(default_factory=dict)  # settings for every Kafka client
    trigger: Duration | None = None  # None: as soon as possible
    state_trigger: Duration | None = None  # for stateful queries and for views; None: one second
    dead_letters: str | None = None  # a topic
    warehouse: str | None = None  # a SQLAlchemy URL
    checkpoints: str | None = None  # a folder
    master: str | None = None  # Spark's master URL; None: Spark's configuration, or local[*]
    spark: Settings = field(default_factory=dict)
    connector: Connector | None = None  # None: jvm if its jars are available, otherwise python
    functions: tuple[Function, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), compare=False, repr=False)  # values that no output may contain
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    @property
    def directory(self) -> str:
        """The definition's folder, from which relative paths and import paths are resolved."""
        return str(Path(self.place.file).parent)

    def without_secrets(self, text: str) -> str:
        """The text with the values of secrets hidden, for messages, logs and files."""
        return hidden(text, self.secrets)
