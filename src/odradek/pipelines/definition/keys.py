"""The keys of a definition: what each is, what it belongs to, its default. The schema of the YAML, declared once.

The parser reads by it, relative paths are found by it, and the editor schema and `docs/keys.md` are made
of it. `parsing` adds what one key says about another.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.vocabulary import (
    Delivery,
    Encoding,
    Engine,
    FileFormat,
    LakehouseFormat,
    OnDataLoss,
    Otherwise,
    SinkMode,
    StateClock,
    StateOrder,
    StreamJoinKind,
    Tombstones,
    Unbounded,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


class Kind(StrEnum):
    """What a value is, in the words of the reference."""

    TEXT = "text"
    PATH = "path"
    URL = "URL"
    TOPIC = "topic"
    TOPICS = "list of topics"
    COLUMN = "column"
    NAMES = "name or list of names"
    INPUT = "source or step"
    WORD = "word"
    FLAG = "true or false"
    COUNT = "integer from 1"
    DURATION = "duration"
    PERIOD = "duration longer than 0"
    SQL = "SQL"
    EXPRESSIONS = "SQL by name"
    EXPECTATIONS = "SQL or keys by name"
    SETTINGS = "text by name"
    IMPORT = "module:name"
    DDL = "columns in DDL"
    SCHEMA = "columns in DDL, or Avro schema"
    WRITERS = "Avro schema by id"
    START = "word, time or offsets"
    KEYS = "keys"
    NAMED = "keys by name"
    OTHER = "values by name"  # read before the definition is parsed


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a mapping. A name may have several keys, which belong to different owners."""

    name: str
    kind: Kind
    text: str
    default: Any = None
    words: Iterable[StrEnum] = ()  # of a WORD; of a DURATION, what may stand in its place
    owners: tuple[str, ...] = ()  # the keys beside it, one of which it needs; none: it applies always
    applies: str = ""  # in messages: to what, instead of the owners
    required: str = ""  # the hint if it is missing or empty
    keys: tuple[Key, ...] = ()  # of KEYS, and of each value of NAMED and EXPECTATIONS
    one_of: tuple[str, ...] = ()  # of these keys exactly one is written
    hint: str = ""  # what to write instead of a wrong value, or how to choose one of the keys

    def belongs_to(self, chosen: str | None) -> bool:
        """Whether it applies beside the key that is chosen."""
        return not self.owners or chosen in self.owners

    @property
    def description(self) -> str:
        """Its text, and its default."""
        shown = str(self.default).lower() if isinstance(self.default, bool) else self.default
        return self.text if shown is None else f"{self.text} Default: {shown}."

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.name for each in self.keys))


ONE_INPUT = "name the input, a source or step: from: name"
KEY_COLUMNS = "name the key columns: key: [id]"
EXPRESSIONS = "SQL expressions by name"
TOPICS = ("topic", "topics", "pattern")


def columns_of_key(text: str, owners: tuple[str, ...] = ()) -> Key:
    return Key("key", Kind.NAMES, text, owners=owners, required=KEY_COLUMNS)


WATERMARK = Key("watermark", Kind.KEYS, "How late an event may be.", keys=(
    Key("column", Kind.COLUMN, "Column of event time, a TIMESTAMP.",
        required="name the column of event time: column: event_time"),
    Key("delay", Kind.DURATION, "How late an event may be, such as 1 minute.",
        required="add how late an event may be: delay: 1 minute"),
))  # fmt: skip

CHANGES = Key("changes", Kind.KEYS, "Change data, applied in the order of a sequence.", keys=(
    columns_of_key("Columns that identify the row that a change is about."),
    Key("sequence", Kind.COLUMN, "Column that orders the changes of a key; a late change never replaces a newer one.",
        required="name the column that orders the changes of a key: sequence: lsn"),
    Key("deletes", Kind.SQL, "Condition of changes that delete the row of their key."),
    Key("history", Kind.FLAG, "Whether every version of a row is kept, with valid_from and valid_to.", default=False),
    Key("remember", Kind.PERIOD,
        "How long a deletion is remembered, so that a late change does not undo it. Without it for ever."),
))  # fmt: skip

AGGREGATE = Key("aggregate", Kind.EXPRESSIONS, f"Aggregates: {EXPRESSIONS}, one row per group.", owners=("aggregate",),
                required="for example aggregate: {events: count(*)}")  # fmt: skip

SOURCE = Key("sources", Kind.NAMED, "Inputs by name: topics, files and databases. Names are tables of SQL.", keys=(
    Key("topic", Kind.TOPIC, "Topic to read."),
    Key("topics", Kind.TOPICS, "Topics to read."),
    Key("pattern", Kind.TEXT, "Regular expression of the topics to read."),
    Key("files", Kind.KEYS, "Files in a folder.", keys=(
        Key("path", Kind.PATH, "Folder, relative to the definition.", required="name the folder: path: data/readings"),
        Key("format", Kind.WORD, "Format of the files.", words=FileFormat, required="json, csv or parquet"),
        Key("options", Kind.SETTINGS, "Options of Spark's reader."),
    )),
    Key("jdbc", Kind.KEYS, "A database table or the result of a query.", keys=(
        Key("url", Kind.URL, "JDBC URL: jdbc:postgresql://host/database.",
            required="add url: jdbc:postgresql://host/database"),
        Key("table", Kind.TEXT, "Table to read."),
        Key("query", Kind.TEXT, "Query whose result is read."),
        Key("options", Kind.SETTINGS, "Options of Spark's JDBC reader."),
    ), one_of=("table", "query")),
    *(replace(each, owners=TOPICS, applies="topics") for each in (
        Key("start", Kind.START, "Where to start without a checkpoint: earliest, latest, a time, or offsets.",
            "earliest"),
        Key("format", Kind.WORD, "Format of the record's value.", Encoding.JSON, Encoding),
        Key("bootstrap_servers", Kind.TEXT, "Brokers of this source, if not the pipeline's."),
        Key("kafka", Kind.SETTINGS, "Settings of this source's consumer."),
        Key("max_records_per_batch", Kind.COUNT, "Limit on the records of a batch."),
        Key("on_data_loss", Kind.WORD, "If records were deleted before they were read: fail, or skip them.",
            OnDataLoss.FAIL, OnDataLoss),
        Key("tombstones", Kind.WORD, "What becomes of records without a value.", words=Tombstones),
    )),
    Key("schema", Kind.SCHEMA, "Columns of the record; for Avro its schema, or {file: …} with it."),
    Key("writer_schemas", Kind.WRITERS, "Avro schemas of writers, by the id before each record."),
    Key("columns", Kind.EXPRESSIONS, f"{EXPRESSIONS}, computed in addition to the record's own columns."),
    WATERMARK,
    Key("stream", Kind.FLAG, "Whether new rows are read as they arrive. Default: true for topics, false for files."),
    Key("refresh", Kind.PERIOD, "How long the table of a database is cached.", owners=("jdbc",),
        hint="without refresh the table is read in every batch"),
), one_of=(*TOPICS, "files", "jdbc"), hint="for example topic: name")  # fmt: skip

VIEW = Key("view", Kind.KEYS, "The step is also kept as a view with its name.", keys=(
    columns_of_key("Key columns: the view has the latest row of each key.", ("key",)),
    Key("order_by", Kind.NAMES, "Column that orders the rows of a key, or several. Default: by arrival.",
        owners=("key",)),
    Key("by", Kind.NAMES, "Columns of the groups of an aggregate.", owners=("aggregate",)),
    AGGREGATE,
    replace(CHANGES, text="Change data: the view has the current row of each key, or the history of it."),
    Key("url", Kind.URL, "SQLAlchemy URL of the view's database, if not the warehouse."),
), one_of=("key", "aggregate", "changes"),
    hint="use key: [id] for the latest row of each key, or aggregate: {…} for a row per group")  # fmt: skip

JOIN = Key("join", Kind.KEYS, "A join with another stream on equal columns. Joins with static tables are SQL.", keys=(
    Key("stream", Kind.TEXT, "A source or step that is a stream. Both sides need a watermark.",
        required="name a source or step: stream: clicks; a join with a static table is SQL"),
    Key("on", Kind.NAMES, "Columns that both sides have.", required="name columns that both sides have: on: [id]"),
    Key("within", Kind.DURATION, "How far apart the event times of matching rows may be.", words=Unbounded,
        required="add how far apart the event times of a match may be: within: 1 hour"),
    Key("how", Kind.WORD, "Which rows without a match are kept.", StreamJoinKind.INNER, StreamJoinKind),
))  # fmt: skip

STEP = Key("steps", Kind.NAMED, "Steps by name. Names are tables of SQL.", keys=(
    Key("from", Kind.NAMES, "Inputs of the function, sources or steps.", owners=("python",),
        required="name the function's inputs, sources or steps: from: [one, another]",
        hint="remove from: the inputs of a query are the tables of its SQL"),
    Key("from", Kind.INPUT, "Input of the step.", owners=("aggregate", "deduplicate", "join", "state"),
        required=ONE_INPUT),
    Key("sql", Kind.TEXT, "A query in Spark SQL over sources and steps."),
    Key("python", Kind.IMPORT, "A function of one DataFrame for each input."),
    AGGREGATE,
    Key("deduplicate", Kind.KEYS, "The first row of each key.", keys=(
        Key("key", Kind.NAMES, "Columns that identify a row.", required="name the id columns: key: [event_id]"),
        Key("within", Kind.DURATION, "Event time after which a key is dropped from state. Needs a watermark."),
    )),
    JOIN,
    Key("state", Kind.KEYS, "Keyed state with timers, by a StatefulProcessor.", keys=(
        columns_of_key("Key columns."),
        Key("processor", Kind.IMPORT, "The StatefulProcessor, a class.", required="write package.module:name"),
        Key("timeout", Kind.PERIOD, "Passed to the processor in milliseconds."),
        Key("clock", Kind.WORD, "Clock of the timers.", StateClock.PROCESSING, StateClock),
        Key("order", Kind.WORD, "any: the result does not depend on the order of the rows of a key.",
            StateOrder.ARRIVAL, StateOrder),
    )),
    Key("window", Kind.KEYS, "Time window of an aggregation; adds window_start and window_end.", owners=("aggregate",),
        keys=(
        Key("column", Kind.COLUMN, "Column of event time.",
            required="name the column of event time: column: event_time"),
        Key("size", Kind.PERIOD, "Length of a window, such as 1 minute."),
        Key("slide", Kind.DURATION, "Interval between the starts of windows, at most the size. Default: the size.",
            owners=("size",)),
        Key("gap", Kind.PERIOD, "Sessions: a session ends when a group has no row for this long."),
    ), one_of=("size", "gap"), hint="size: 1 minute for windows of a length, or gap: 30 minutes for sessions"),
    Key("by", Kind.NAMES, "Columns of the groups of an aggregation.", owners=("aggregate",)),
    Key("expect", Kind.EXPECTATIONS, "Expectations by name: a condition, or its keys.", keys=(
        Key("check", Kind.TEXT, "SQL condition that rows should meet.",
            required="add a SQL condition: check: pressure > 0"),
        Key("otherwise", Kind.WORD, "What happens to other rows.", Otherwise.WARN, Otherwise),
    ), hint="for example expect: {plausible: {check: pressure > 0, otherwise: drop}}"),
    WATERMARK,
    Key("schema", Kind.DDL, "Columns of the result of a Python function or processor.", owners=("python", "state")),
    VIEW,
), one_of=("sql", "python", "aggregate", "deduplicate", "join", "state"), hint="for example sql: select …")  # fmt: skip

SINK = Key("sinks", Kind.NAMED, "Outputs by name.", keys=(
    Key("from", Kind.INPUT, "Source or step whose rows are written.", required=ONE_INPUT),
    Key("topic", Kind.TOPIC, "Topic to write to."),
    Key("files", Kind.KEYS, "Files, written by Spark's file sink.", keys=(
        Key("path", Kind.PATH, "Folder, relative to the definition.", required="name the folder: path: out/readings"),
        Key("format", Kind.WORD, "Format of the files.", FileFormat.PARQUET, FileFormat),
        Key("partition_by", Kind.NAMES, "Columns whose values are folder names."),
        Key("options", Kind.SETTINGS, "Options of Spark's writer."),
    )),
    Key("table", Kind.TEXT, "Table in the warehouse, or in the database of url."),
    Key("lakehouse", Kind.KEYS, "Delta or Iceberg table.", keys=(
        Key("format", Kind.WORD, "Table format.", words=LakehouseFormat,
            required="add format: delta or format: iceberg"),
        Key("table", Kind.TEXT, "Name of the table in a catalog of Spark."),
        Key("path", Kind.PATH, "Folder of a Delta table, relative to the definition."),
        Key("key", Kind.NAMES, "Key columns: a row replaces the one of its key."),
        Key("partition_by", Kind.NAMES, "Columns that partition the files of a new table."),
    ), one_of=("table", "path"), hint="name it: table: sales.orders, or path: lake/orders"),
    Key("spark", Kind.KEYS, "Any other format that is available to Spark.", keys=(
        Key("format", Kind.TEXT, "Name of the Spark format, such as delta.",
            required="name the Spark format: format: delta"),
        Key("options", Kind.SETTINGS, "Options of the format."),
    )),
    Key("console", Kind.FLAG, "Prints rows.", default=True),
    Key("python", Kind.IMPORT, "A function of each batch and its id."),
    Key("mode", Kind.WORD, "append: final rows; update: every changed row.", SinkMode.APPEND, SinkMode,
        ("topic", "spark", "console", "python"), hint="in a table with key, a row replaces that of its key"),
    Key("key", Kind.SQL, "Key of the record.", owners=("topic",)),
    Key("key", Kind.NAMES, "Key columns: a row replaces the one of its key.", owners=("table",)),
    *(replace(each, owners=("topic",)) for each in (
        Key("value", Kind.NAMES, "Columns of the record's value; with format text or bytes one SQL expression. "
            "Default: all columns."),
        Key("format", Kind.WORD, "Format of the record's value.", Encoding.JSON,
            (Encoding.JSON, Encoding.TEXT, Encoding.BYTES), hint="Avro is supported in sources only"),
        Key("headers", Kind.EXPRESSIONS, f"Headers of the record: {EXPRESSIONS}."),
        Key("bootstrap_servers", Kind.TEXT, "Brokers of this sink, if not the pipeline's."),
        Key("kafka", Kind.SETTINGS, "Settings of this sink's producer."),
        Key("deletes", Kind.SQL, "Condition of rows that are written as tombstones."),
    )),
    Key("url", Kind.URL, "SQLAlchemy URL of the table's database, if not the warehouse.", owners=("table",)),
    Key("order_by", Kind.NAMES, "Column, or several: a row does not replace one with a greater value.",
        owners=("table",)),
    replace(CHANGES, owners=("table",)),
), one_of=("topic", "files", "table", "lakehouse", "spark", "console", "python"),
    hint="for example topic: name")  # fmt: skip

SETTINGS = (
    Key("engine", Kind.WORD, "standard: micro-batches; realtime: Spark's real-time mode; batch: one run over a range.",
        Engine.STANDARD, Engine),
    Key("delivery", Kind.WORD, "Guarantee after a failure. exactly_once needs brokers with transactions.",
        Delivery.AT_LEAST_ONCE, Delivery),
    Key("bootstrap_servers", Kind.TEXT, "Brokers as host:port, separated by commas.", "127.0.0.1:9092"),
    Key("kafka", Kind.SETTINGS, "Settings for all Kafka clients, by Kafka's names."),
    Key("trigger", Kind.DURATION,
        "Interval between micro-batches. Without it, a batch starts as soon as the last one ends."),
    Key("state_trigger", Kind.DURATION, "Interval of stateful queries and views. Default: 1 second."),
    Key("dead_letters", Kind.TOPIC, "Topic for records that fail to parse, and for quarantined rows."),
    Key("warehouse", Kind.URL, "SQLAlchemy URL of the database for tables and views. Default: sqlite:///NAME.db."),
    Key("checkpoints", Kind.PATH, "Folder of the checkpoints."),
    Key("master", Kind.TEXT, "Spark's master URL."),
    Key("spark", Kind.SETTINGS, "Spark settings."),
)  # fmt: skip

PIPELINE = Key("", Kind.KEYS, "A whole definition.", keys=(
    Key("pipeline", Kind.TEXT, "Name of the pipeline: letters, digits, dashes and underscores."),
    *SETTINGS,
    Key("parameters", Kind.OTHER, "Parameters by name, used as ${NAME}."),
    SOURCE,
    STEP,
    SINK,
    replace(VIEW, name="views", kind=Kind.NAMED, text="Tables in the warehouse that are kept up to date, by name.",
        keys=(Key("from", Kind.INPUT, "Source or step.", required=ONE_INPUT), *VIEW.keys)),
))  # fmt: skip
