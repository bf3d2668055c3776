"""The model of a pipeline: sources, steps, sinks and views as immutable values that record where they were written.

YAML and decorators both produce this model; places are ignored when models are compared. Sources and steps share one
namespace: their names are the tables of SQL. The model itself validates nothing; `checks` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.column_types import Array, Column, Primitive, Struct, columns_ddl
from odradek.pipelines.definition.places import NOWHERE, Place
from odradek.pipelines.definition.secrets import hidden, secret_values
from odradek.pipelines.definition.vocabulary import (
    Delivery,
    Duration,
    Encoding,
    Engine,
    FileFormat,
    LakehouseFormat,
    OnDataLoss,
    Otherwise,
    SinkMode,
    StartAt,
    Tombstones,
)

if TYPE_CHECKING:
    from odradek.pipelines.definition.operations import NamedExpression, Operation, PythonReference

Settings = Mapping[str, str]
Places = Mapping[str, Place]  # by path below a name: `from`, `window/column`, `by/hcid`
DEFAULT_BOOTSTRAP_SERVERS = "127.0.0.1:9092"


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """The columns of a record; for Avro also the schema itself, and those of the records' writers."""

    columns: tuple[Column, ...]
    avro: str | None = None  # canonical JSON
    writers: Mapping[int, str] | None = None  # by the id in the record's header; None: records have no header
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
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Start:
    """Where to start reading: `time_ms` (since 1970) for TIME, offsets by topic and partition for OFFSETS."""

    at: StartAt = StartAt.EARLIEST
    time_ms: int | None = None
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicOrigin:
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
    name: str
    check: str
    otherwise: Otherwise = Otherwise.WARN
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    check_place: Place = field(default=NOWHERE, compare=False, repr=False)


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

    With `order_by`, a row replaces the one of its key unless that one has greater values in these columns.
    """

    table: str
    key: tuple[str, ...] = ()
    url: str | None = None
    order_by: tuple[str, ...] = ()
    changes: Changes | None = None


@dataclass(frozen=True, slots=True)
class LakehouseTarget:
    """A Delta or Iceberg table, by its name in a catalog or by its folder; with a key, rows are merged."""

    format: LakehouseFormat
    table: str | None = None
    path: str | None = None
    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()

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
    name: str
    input: str
    target: Target
    mode: SinkMode = SinkMode.APPEND
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    places: Places = field(default_factory=dict, compare=False, repr=False)

    @property
    def changes(self) -> Changes | None:
        """The change data that it applies, if any."""
        return self.target.changes if isinstance(self.target, TableTarget) else None


@dataclass(frozen=True, slots=True)
class LatestRows:
    """The latest row of each key by the columns `order_by`, or by arrival if there are none."""

    key: tuple[str, ...]
    order_by: tuple[str, ...] = ()


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

    @property
    def changes(self) -> Changes | None:
        """The change data that it applies, if any."""
        return self.content if isinstance(self.content, Changes) else None


@dataclass(frozen=True, slots=True)
class Pipeline:
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
    secrets: frozenset[str] = field(default=frozenset(), compare=False, repr=False)  # values that no output may contain
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    @property
    def directory(self) -> str:
        """The definition's folder, from which relative paths and import paths are resolved."""
        return str(Path(self.place.file).parent)

    def below(self, path: str) -> str:
        """A path resolved from the definition's folder, unless it is absolute or a URL."""
        return path if "://" in path else str(Path(self.directory, path).absolute())

    def without_secrets(self, text: str) -> str:
        """The text with the values of secrets hidden, for messages, logs and files."""
        return hidden(text, self.all_secrets)

    @property
    def all_secrets(self) -> frozenset[str]:
        """The secrets of the definition, and passwords and keys among the settings of clients and of Spark."""
        own = [each.origin.kafka for each in self.sources if isinstance(each.origin, TopicOrigin)]
        own += [each.target.kafka for each in self.sinks if isinstance(each.target, TopicTarget)]
        found = (secret for settings in (self.kafka, self.spark, *own) for secret in secret_values(settings))
        return self.secrets.union(found)


@dataclass(frozen=True, slots=True)
class Parsed:
    """The model without its invalid parts, and the names of the declarations that were left out."""

    pipeline: Pipeline
    broken: frozenset[str]


class Placed(Protocol):
    """A declaration, with the places of its values by path."""

    @property
    def place(self) -> Place: ...

    @property
    def places(self) -> Places: ...


def place_of(thing: Placed, *keys: str) -> Place:
    """The place of a value of a declaration, or of the nearest value around it whose place is known."""
    paths = ("/".join(keys[:length]) for length in range(len(keys), 0, -1))
    return next((thing.places[path] for path in paths if path in thing.places), thing.place)
