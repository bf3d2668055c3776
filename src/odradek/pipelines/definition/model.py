"""What a pipeline is: sources, steps, sinks and views, as frozen values that know where they were written.

YAML and decorators both give this model; places do not count when two of them are compared. Names of sources and steps
are one namespace: they are the tables of SQL. Nothing in here is checked; `checks` does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from odradek.pipelines.definition.column_types import Array, Column, Primitive, Struct, columns_ddl
from odradek.pipelines.definition.places import NOWHERE, Place
from odradek.pipelines.definition.vocabulary import (
    Connector,
    Delivery,
    Duration,
    Encoding,
    Engine,
    FileFormat,
    JoinKind,
    OnDataLoss,
    Otherwise,
    SinkMode,
    StartAt,
    StateClock,
)

Settings = Mapping[str, str]
Places = Mapping[str, Place]  # of the values below a name: `from`, `window/column`, `by/hcid`
DEFAULT_BOOTSTRAP_SERVERS = "127.0.0.1:9092"


@dataclass(frozen=True, slots=True)
class NamedExpression:
    """A SQL expression and the column, header or aggregate that it gives."""

    name: str
    expression: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    expression_place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PythonReference:
    """A function or a class by its import path, `package.module:name`; the pipeline's own folder is looked in first."""

    module: str
    name: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """The columns of a record, however they were declared; an Avro schema is kept whole for its decoder."""

    columns: tuple[Column, ...]
    avro: str | None = None  # canonical JSON
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    @property
    def ddl(self) -> str:
        return columns_ddl(self.columns)


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """How the value of a record becomes columns; text is one column `value`, bytes are `_value` alone."""

    encoding: Encoding = Encoding.JSON
    schema: RecordSchema | None = None


# What every topic source offers beside the columns of its records.
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
    """How late an event may be before a stream stops waiting for it."""

    column: str
    delay: Duration
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Start:
    """The first records to read: `time_ms` since 1970 with TIME, offsets by topic and partition with OFFSETS."""

    at: StartAt = StartAt.EARLIEST
    time_ms: int | None = None
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicOrigin:
    """Records of topics: either their names, or a pattern of names."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    start: Start = Start()
    bootstrap_servers: str | None = None  # where other than the pipeline's
    kafka: Settings = field(default_factory=dict)  # settings of this consumer
    max_records_per_batch: int | None = None
    on_data_loss: OnDataLoss = OnDataLoss.FAIL


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """Files in a folder; as a stream, new files are read as they come."""

    path: str
    format: FileFormat
    options: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JdbcOrigin:
    """A table of a database, or the result of a query; never a stream."""

    url: str
    table: str | None = None
    query: str | None = None
    options: Settings = field(default_factory=dict)


Origin = TopicOrigin | FileOrigin | JdbcOrigin


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows come from, and the columns that they have."""

    name: str
    origin: Origin
    format: RecordFormat = RecordFormat()
    columns: tuple[NamedExpression, ...] = ()  # computed beside the record's own
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
    columns: tuple[Column, ...] | None = None  # what it promises to return, where that is said


@dataclass(frozen=True, slots=True)
class Window:
    """Stretches of event time; without a slide they follow one another."""

    column: str
    size: Duration
    slide: Duration | None = None
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
    """The first row of each id; with `within`, ids are forgotten after that much event time."""

    input: str
    by: tuple[str, ...]
    within: Duration | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """Rows with the columns of a static table beside them, by columns of the same name."""

    input: str
    table: str
    on: tuple[str, ...]
    how: JoinKind = JoinKind.INNER


@dataclass(frozen=True, slots=True)
class KeyedState:
    """A `StatefulProcessor` by import path, run by `transformWithState` for the rows of each key."""

    input: str
    by: tuple[str, ...]
    processor: PythonReference
    timeout: Duration | None = None
    clock: StateClock = StateClock.PROCESSING
    columns: tuple[Column, ...] | None = None  # what it returns; without it the class says so itself


Operation = Sql | PythonFunction | Aggregation | Deduplication | Join | KeyedState


@dataclass(frozen=True, slots=True)
class Step:
    """A DataFrame made of others, with what is expected of its rows."""

    name: str
    operation: Operation
    expectations: tuple[Expectation, ...] = ()
    watermark: Watermark | None = None
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    places: Places = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """Records of a topic: the value is a JSON object of `value`'s columns (all, when empty), or one expression."""

    topic: str
    key: str | None = None  # an expression
    value: tuple[str, ...] = ()
    encoding: Encoding = Encoding.JSON  # text and bytes take exactly one expression as their value
    headers: tuple[NamedExpression, ...] = ()
    bootstrap_servers: str | None = None
    kafka: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FilesTarget:
    """Files by Spark's own file sink."""

    path: str
    format: FileFormat
    partition_by: tuple[str, ...] = ()
    options: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableTarget:
    """A table of the warehouse, or of the database of another URL."""

    table: str
    key: tuple[str, ...] = ()
    url: str | None = None


@dataclass(frozen=True, slots=True)
class SparkTarget:
    """Any other format that the user's Spark knows."""

    format: str
    options: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConsoleTarget:
    """Rows on the screen."""


@dataclass(frozen=True, slots=True)
class PythonTarget:
    """A function of each batch and its number."""

    function: PythonReference


Target = TopicTarget | FilesTarget | TableTarget | SparkTarget | ConsoleTarget | PythonTarget


@dataclass(frozen=True, slots=True)
class Sink:
    """Where the rows of a source or a step go."""

    name: str
    input: str
    target: Target
    mode: SinkMode = SinkMode.APPEND
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    places: Places = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LatestRows:
    """The last row of each key, by a column that orders them; without one, by the order of arrival."""

    key: tuple[str, ...]
    order_by: str | None = None


@dataclass(frozen=True, slots=True)
class RunningAggregate:
    """A row per group that is always up to date."""

    by: tuple[str, ...]
    aggregates: tuple[NamedExpression, ...]


@dataclass(frozen=True, slots=True)
class View:
    """A table of the warehouse that is kept equal to a result while the stream runs."""

    name: str
    input: str
    content: LatestRows | RunningAggregate
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
    kafka: Settings = field(default_factory=dict)  # settings of every client of the brokers
    trigger: Duration | None = None  # None: as soon as possible
    state_trigger: Duration | None = None  # of queries that keep state, and of views; None: a second
    dead_letters: str | None = None  # a topic
    warehouse: str | None = None  # a SQLAlchemy URL
    checkpoints: str | None = None  # a folder
    master: str | None = None  # Spark's; None: what Spark is configured with, or local[*]
    spark: Settings = field(default_factory=dict)
    connector: Connector | None = None  # None: Spark's own where it can be had, else ours
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    @property
    def directory(self) -> str:
        """Where relative paths and import paths begin: beside the definition."""
        return str(Path(self.place.file).parent)
