"""What the names in a query of `odradek sql` stand for (tables, sources, steps, topics), and the answer to it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from odradek.pipelines.definition.ddl import parse_ddl
from odradek.pipelines.definition.model import (
    Pipeline,
    RecordFormat,
    RecordSchema,
    Source,
    Start,
    TableTarget,
    TopicOrigin,
)
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.vocabulary import Encoding
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.databases import WarehouseRefused, database_url, parsed_url, reading
from odradek.pipelines.spark.writing.table_changes import is_internal
from odradek.pipelines.spark.writing.topics import Cluster
from odradek.pipelines.spark.writing.warehouse import BATCH_TABLE, RUN_TABLE
from odradek.pipelines.sql.text import parse_any, tables_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from odradek.pipelines.planning.plan import Plan

OWN_TABLES = {BATCH_TABLE, RUN_TABLE}
NO_OBJECTS = "topic '{}' has no records that are JSON objects; omit --infer to see its values"


@dataclass(frozen=True, slots=True)
class QueryContext:
    """The definition, database and topics in which the tables of a query are looked up."""

    pipeline: Pipeline  # the definition's; without sources if there is none
    warehouse: str | None = None  # overrides the pipeline's
    schemas: Mapping[str, str] = field(default_factory=dict)  # columns of JSON values in DDL, by topic
    inferred: frozenset[str] = frozenset()  # topics of JSON values whose columns are inferred


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table or view of a database."""

    url: str
    name: str


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """A source or step of the definition."""

    name: str


@dataclass(frozen=True, slots=True)
class TopicTable:
    """The records of a topic: their values as text, or the columns of a schema, which may have to be inferred."""

    name: str
    schema: RecordSchema | None = None
    is_inferred: bool = False

    @property
    def source(self) -> Source:
        encoding = Encoding.BYTES if self.schema is None else Encoding.JSON
        return Source(self.name, TopicOrigin((self.name,)), RecordFormat(encoding, self.schema))


QueryTable = StoredTable | DeclaredTable | TopicTable


class Catalog:
    """Resolves the table names of a query. Brokers are asked only where no other table has the name."""

    def __init__(self, context: QueryContext) -> None:
        self._context = context
        self.pipeline = from_earliest(context.pipeline)
        self._declared = [*(each.name for each in self.pipeline.sources), *(each.name for each in self.pipeline.steps)]
        targets = [each.target for each in self.pipeline.sinks]
        tables = {each.table: each.url for each in targets if isinstance(each, TableTarget)}
        declared = {**tables, **{view.name: view.url for view in self.pipeline.views}}
        self._unwritten = {name.lower() for name in declared}
        own = {} if context.warehouse is not None else declared
        self._elsewhere = {
            name.lower(): (database_url(context.pipeline, url), name) for name, url in own.items() if url is not None
        }
        self._warehouse, self._stored = context.warehouse or "", list[str]()
        if context.warehouse is not None:
            self._stored = table_names(context.warehouse)
        elif context.pipeline.sources:
            self._warehouse = database_url(context.pipeline, None)
            self._stored = table_names(self._warehouse) if exists(self._warehouse) else []

    @cached_property
    def plan(self) -> Plan:
        """The plan of sources and steps."""
        return plan_again(self.pipeline)

    @cached_property
    def cluster(self) -> Cluster:
        """The topics of the definition's brokers."""
        return Cluster(self.pipeline.bootstrap_servers, self.pipeline.kafka)

    def partitions_of(self, topic: str, origin: TopicOrigin) -> int:
        return self.cluster.partitions_of(topic, origin)

    @property
    def databases(self) -> list[str]:
        urls = [self._warehouse] if self._stored else []
        return list(dict.fromkeys([*urls, *(url for url, _ in self._elsewhere.values())]))

    def tables(self, text: str) -> dict[str, QueryTable]:
        """What each table of a query is."""
        return {name: self._table(name, text) for name in tables_of(parse_any(text))}

    def stored(self, name: str) -> StoredTable | None:
        """The table of a database. Tables and views with a `url` are looked up there only."""
        if name.lower() in self._elsewhere:
            url, table = self._elsewhere[name.lower()]
            found = {each.lower(): each for each in table_names(url)} if exists(url) else {}
            return StoredTable(url, found[table.lower()]) if table.lower() in found else None
        found = {each.lower(): each for each in self._stored}
        return StoredTable(self._warehouse, found[name.lower()]) if name.lower() in found else None

    def reads_topics(self, table: QueryTable) -> bool:
        if not isinstance(table, DeclaredTable):
            return isinstance(table, TopicTable)
        whole = self.plan.upstream(table.name)
        return any(isinstance(each.origin, TopicOrigin) for each in self.pipeline.sources if each.name in whole)

    def _table(self, name: str, text: str) -> QueryTable:
        stored = self.stored(name)
        if stored is not None:
            return stored
        declared = {each.lower(): each for each in self._declared}
        if name.lower() in declared:
            return DeclaredTable(declared[name.lower()])
        if name.lower() in self._unwritten:
            raise PipelineError(
                f"'{name}' is declared, but its database does not have it; run the pipeline first: "
                f"odradek pipeline run {self.pipeline.place.file}"
            )
        if "." in name and f"`{name}`" not in text:
            raise PipelineError(f"put names with dots in backticks: `{name}`")
        if name not in self.cluster.partitions:
            known = [*self._stored, *self._declared, *self.cluster.partitions]
            hint = suggestion(name, known, what="there are") or "there is nothing else"
            raise PipelineError(f"there is no table, source, step or topic '{name}'; {hint}")
        ddl = self._context.schemas.get(name)
        if ddl is not None:
            return TopicTable(name, RecordSchema(parse_ddl(ddl)))
        return TopicTable(name, is_inferred=name in self._context.inferred)


def from_earliest(pipeline: Pipeline) -> Pipeline:
    """The pipeline with sources that start at their earliest record: a query covers all records."""
    sources = tuple(
        replace(each, origin=replace(each.origin, start=Start())) if isinstance(each.origin, TopicOrigin) else each
        for each in pipeline.sources
    )
    return replace(pipeline, sources=sources)


def exists(url: str) -> bool:
    """Whether the database exists; connecting to SQLite would create a missing file."""
    parsed = parsed_url(url)
    return parsed.get_backend_name() != "sqlite" or Path(parsed.database or "").exists()


def table_names(url: str) -> list[str]:
    if not exists(url):
        raise WarehouseRefused(f"{url}: the file does not exist")
    with reading(url) as connection:
        inspector = sa.inspect(connection)
        names = (*inspector.get_table_names(), *inspector.get_view_names())
        return [name for name in names if name not in OWN_TABLES and not is_internal(name)]


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's result: column names, and rows of JSON values."""

    names: list[str]
    rows: Iterator[dict[str, Any]]

    @classmethod
    def of(cls, names: Iterable[str], rows: Iterable[Iterable[Any]]) -> Answer:
        distinct = distinct_names(list(names))
        return cls(distinct, (dict(zip(distinct, row, strict=True)) for row in rows))


def distinct_names(names: list[str]) -> list[str]:
    """Appends a number to duplicate column names."""
    taken: dict[str, int] = {}
    found = []
    for name in names:
        taken[name.lower()] = taken.get(name.lower(), 0) + 1
        found.append(name if taken[name.lower()] == 1 else f"{name}_{taken[name.lower()]}")
    return found
