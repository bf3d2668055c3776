"""What Spark says of a plan before it runs: each table over empty inputs, and each flow over empty sources.

The frames are made by the code that runs, from other sources. Besides, Spark reads the SQL of each step as the user
wrote it: its errors have a position in that text, and its columns must be those that are computed.
"""

from __future__ import annotations

import re
import tempfile
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import Source, Step, TopicOrigin, place_of
from odradek.pipelines.definition.operations import KeyedState, PythonFunction, Sql
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.definition.vocabulary import Encoding
from odradek.pipelines.planning.plan import PASSES, GroupSql, PairSql, RowSql, StaticSql, Table
from odradek.pipelines.planning.verdicts import Code
from odradek.pipelines.planning.written import COLUMNS, expressions
from odradek.pipelines.spark.analysing.plan_walk import (
    CastFound,
    PlanUnreadable,
    implicit_casts,
    random_part,
    stateful_operator,
    unsupported,
)
from odradek.pipelines.spark.computing.groups import determined
from odradek.pipelines.spark.computing.keyed_rows import SHUFFLE_PARTITIONS, SORTING
from odradek.pipelines.spark.computing.row_program import row_program
from odradek.pipelines.spark.computing.rows import NotCompilable
from odradek.pipelines.spark.computing.tables import Tables
from odradek.pipelines.spark.engines.flow_queries import query_of
from odradek.pipelines.spark.frames import INTERNAL, REJECTED, quoted
from odradek.pipelines.spark.reading.record_files import RECORD_DDL
from odradek.pipelines.spark.reading.records import PARSED
from odradek.pipelines.spark.reading.sources import read_once
from odradek.pipelines.spark.sessions.failures import SPARK_ERRORS, PipelineError, causes, plain_message
from odradek.pipelines.spark.sessions.session import start_session
from odradek.pipelines.sql.query import Query
from odradek.pipelines.sql.results import type_of_name
from odradek.pipelines.sql.text import parse_any, tables_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from odradek.pipelines.definition.column_types import Column
    from odradek.pipelines.definition.places import Place
    from odradek.pipelines.planning.plan import End, Flow, Plan
    from odradek.pipelines.sql.blocks import Part

TEXT, BYTES = "STRUCT<value: STRING>", "STRUCT<`_`: INT>"  # what `records.decoded` parses of records without a schema
SPARK = "OD05"  # the code of what Spark refuses
PLACE = re.compile(r"^\S*:\d+:\d+: ")  # begins messages of this package
TEXTS = ("interval", "struct", "array", "map", "variant")  # types that databases keep as text
INEXACT = ("double", "float", "array<", "map<", "struct<")
ACTION = "streaming sources must be executed"  # in Spark's words for an action on a stream
NO_ACTIONS = "a Python step gets a stream: use where, select and the like, and no action such as count() or collect()"


def analysed(
    session: SparkSession, plan: Plan, problems: Problems, load: Callable[[Source], DataFrame]
) -> dict[str, StructType]:
    """The columns of the tables that Spark accepts, by name. Reports what Spark refuses, and what it accepts and the
    promise does not. `load` reads a static source of which the definition declares no columns. No job runs, but for
    the schemas of such sources."""
    own = session.newSession()
    for key, value in plan.pipeline.spark.items():
        if key.startswith("spark.sql.") and own.conf.isModifiable(key):
            own.conf.set(key, value)
    own.conf.set(SORTING, "false")  # Spark checks queries that sort their batches without the sort
    analysing = _Analysing(own, plan, problems, load)
    analysing.tables()
    if not problems.errors:
        analysing.flows()
    return analysing.schemas


@contextmanager
def analyser(note: Callable[[str], None]) -> Iterator[Callable[[Plan], Problems]]:
    """A function that analyses plans, all of them with one session on this machine."""
    session = start_session("odradek validate", {SHUFFLE_PARTITIONS: "1"}, "local[1]", note, has_connector=False)

    def analyse(plan: Plan) -> Problems:
        problems = Problems()
        analysed(session, plan, problems, lambda source: read_once(session, source, plan.pipeline, _no_partitions))
        return problems

    try:
        yield analyse
    finally:
        session.stop()


def _no_partitions(topic: str, _origin: TopicOrigin) -> int:
    raise PipelineError(f"the topic {topic} is not read to analyse a definition")


class _Analysing:
    """One analysis."""

    def __init__(
        self, session: SparkSession, plan: Plan, problems: Problems, load: Callable[[Source], DataFrame]
    ) -> None:
        self.schemas: dict[str, StructType] = {}
        self._session, self._plan, self._problems, self._load = session, plan, problems, load

    def tables(self) -> None:
        written = list(expressions(self._plan, of_streams=False))
        for table in self._plan.tables.values():
            over_inputs = [each for each in written if each[0] is table and each[1] != table.name]
            is_readable = all(each in self.schemas for each in table.inputs) and self._accepts_sql(table)
            if is_readable and all(self._accepts_expression(*each) for each in over_inputs):
                self._add(table)
        for subject, name, text, place in written:
            if name in self.schemas and not (isinstance(subject, Table) and name != subject.name):
                self._accepts_expression(subject, name, text, place)
        for end in self._plan.ends:
            if end.input in self.schemas:
                self._check_columns(end)

    def flows(self) -> None:
        for flow in self._plan.flows:
            root = self._plan.table(flow.root)
            with self._reporting(root.place()):
                frame, _ = query_of(self._session, self._plan, flow, self._source)
                refused = unsupported(frame, flow.mode) if frame.isStreaming else None
                if refused is not None:
                    self._problems.error(root.place(), f"Spark does not run {root.described}: {refused}", code=SPARK)
                if flow.is_row_program:
                    self._check_program(flow, frame)

    def _source(self, source: Source) -> DataFrame:
        return source_stand_in(self._session, source, self._load)

    def _input(self, name: str) -> DataFrame:
        return stand_in(self._session, self.schemas[name], is_stream=self._plan.is_stream(name))

    def _add(self, table: Table) -> None:
        """Adds the columns of a table that is computed over its inputs."""
        tables = Tables(self._session, self._plan, self._source)
        for name in table.inputs:
            tables.give_rows(name, self._input(name))
        with self._reporting(table.place()):
            frame = tables.rows(table.name)
            if isinstance(table.made_by, PythonFunction):
                self._check_python(table, table.made_by, tables.before_checks(table.name))
            elif not isinstance(table.made_by, Source | PairSql) and _part_of(table) is None:
                self._check_casts(table, frame, table.place())
            if isinstance(table.made_by, KeyedState):  # which finds keys by their bytes: those of 0.0 and -0.0 differ
                kinds = kinds_of(self.schemas[table.made_by.input])
                for name in table.made_by.key:
                    self._check_exact(table, name, kinds.get(name.lower(), ""), table.place("state", "key", name))
            self.schemas[table.name] = frame.schema

    def _accepts_sql(self, table: Table) -> bool:
        """Whether Spark accepts the SQL of a table as it is written, with the columns that the table has."""
        part = _part_of(table)
        if part is None:
            return True
        inputs = {each.lower(): each for each in table.inputs}
        if isinstance(table.made_by, RowSql) and table.made_by.pairs is not None:
            sides = self._plan.table(table.made_by.shape.streams[0]).inputs
            inputs |= {each.lower(): each for each in sides}
        before = len(self._problems.errors)
        with self._reporting(table.place_in_sql(part.start), table, part):
            for name in tables_of(parse_any(part.text)):
                known = inputs[part.renamed.get(name.lower(), name).lower()]
                self._input(known).drop(*INTERNAL).createOrReplaceTempView(name)
            frame = self._session.sql(part.text)
            query = table.made_by.query if isinstance(table.made_by, RowSql | GroupSql) else None
            self._check_casts(table, frame, table.place_in_sql(part.start), query)
            self._check_meaning(table, part, frame.schema)
        return len(self._problems.errors) == before

    def _check_meaning(self, table: Table, part: Part, expected: StructType) -> None:
        """Reports a table that would not have the columns of its text. It would be a bug of this package."""
        tables = Tables(self._session, self._plan, self._source)
        for name in table.inputs:
            tables.give_rows(name, self._input(name))
        found = tables.rows(table.name).drop(*INTERNAL, PASSES).schema
        if described(found) != described(expected):
            message = f"{table.described} would have the columns {described(found)}, and in Spark {described(expected)}"
            self._problems.error(table.place_in_sql(part.start), message, "write the query in another way", SPARK)

    def _check_casts(self, subject: Table | End, frame: DataFrame, place: Place, query: Query | None = None) -> None:
        """Reports the casts of STRING that the definition does not write."""
        for each in implicit_casts(frame):
            if query is None or not _is_written(each, query):
                at = None if query is None or not isinstance(subject, Table) else _place_in(subject, each, query)
                message = f"{subject.described} casts the STRING {each.expression} implicitly"
                hint = f"write cast({each.expression} as {each.target.lower()}), or try_cast"
                self._problems.error(at or place, message, hint, Code.IMPLICIT_CAST)

    def _check_python(self, table: Table, made: PythonFunction, frame: DataFrame) -> None:
        state = stateful_operator(frame) if frame.isStreaming else None
        random = random_part(frame)
        if state is not None:
            message = f"{table.described} keeps state in Python: its plan has {state}"
            hint = "declare it: aggregate, deduplicate, a join with stream, or state"
            self._problems.error(table.place(), message, hint, Code.PYTHON_STATE)
        elif random is not None:
            message = f"{table.described} uses {random} in Python, which the rows do not determine"
            self._problems.error(table.place(), message, "use xxhash64 of columns", Code.PYTHON_STATE)
        declared = {each.name.lower() for each in made.columns or ()}
        missing = sorted(declared - {each.lower() for each in frame.columns})
        if missing:
            message = f"{table.described} returns no column '{missing[0]}', which its schema declares"
            self._problems.error(table.place("schema"), message, code=SPARK)

    def _accepts_expression(self, subject: Table | End, name: str, text: str, place: Place) -> bool:
        """Whether Spark accepts an expression over a table; one over the input of an aggregation is an aggregate."""
        before = len(self._problems.errors)
        with self._reporting(place):
            frame = self._input(name)
            is_aggregate = isinstance(subject, Table) and name != subject.name
            made = frame.agg(F.expr(determined(text))) if is_aggregate else frame.select(F.expr(text))
            query = Query.of_expression(text, name, lambda _table: None)
            self._check_casts(subject, made, place, query)
        return len(self._problems.errors) == before

    def _check_columns(self, end: End) -> None:
        """Reports columns that an end names and its input does not have, and keys that are not exact."""
        kinds = kinds_of(self.schemas[end.input])
        for keys, names in (("key", end.key), ("order_by", end.order_by)):
            for name in names:
                kind = kinds.get(name.lower())
                if kind is None:
                    message = (
                        f"{end.described} names the column '{name}', which '{self._plan.shown(end.input)}' has not"
                    )
                    self._problems.error(place_of(end, keys, name), message, code=COLUMNS)
                elif keys == "key":
                    self._check_exact(end, name, kind, place_of(end, keys, name))
                elif keys == "order_by" and kind.startswith(TEXTS):
                    message = f"the column '{name}' of {end.described} is {kind.upper()}, by which no row is newer"
                    self._problems.error(place_of(end, keys, name), message, "use a number or a time", SPARK)

    def _check_exact(self, subject: Table | End, name: str, kind: str, place: Place) -> None:
        if any(each in kind for each in INEXACT):
            message = f"the key column '{name}' of {subject.described} is {kind.upper()}, which is not exact"
            hint = f"cast it in a step before: cast({name} as decimal(18, 6)), or use its fields or another key"
            self._problems.error(place, message, hint, Code.INEXACT_KEY)

    def _check_program(self, flow: Flow, frame: DataFrame) -> None:
        try:
            row_program(self._plan, flow, frame)
        except NotCompilable as error:
            root = self._plan.table(flow.root)
            message = f"{root.described} is not computed in one pass: {error}"
            self._problems.warning(root.place(), message, "its batches are computed as tables, which takes longer")

    @contextmanager
    def _reporting(self, place: Place, table: Table | None = None, part: Part | None = None) -> Iterator[None]:
        """Reports an error of Spark at the place that it names in the SQL of a step, if that is given."""
        try:
            yield
        except PlanUnreadable as error:
            self._problems.error(place, str(error), "use a version of PySpark that is tested", Code.PYTHON_STATE)
        except (PipelineError, *SPARK_ERRORS) as error:
            cause = next((each for each in causes(error) if isinstance(each, PySparkException)), error)
            offset = None if table is None or part is None else offset_of(cause)
            if table is not None and part is not None and offset is not None:
                place = table.place_in_sql(part.start + offset)
            words = str(error) if cause is error and isinstance(error, PipelineError) else plain_message(cause)
            self._problems.error(place, PLACE.sub("", words), NO_ACTIONS if ACTION in words else "", SPARK)


def _part_of(table: Table) -> Part | None:
    """The text of a table as the user wrote it; None if there is none, or if that of another table includes it."""
    made = table.made_by
    if isinstance(made, StaticSql):
        return made.part
    is_of_sql = isinstance(table.owner, Step) and isinstance(table.owner.operation, Sql)
    if not isinstance(made, RowSql | GroupSql) or not is_of_sql or _is_filter_of_groups(made):
        return None
    return made.query.part


def _is_filter_of_groups(made: RowSql | GroupSql) -> bool:
    """Whether it is the filter by which HAVING keeps groups, which is not written as a query."""
    return isinstance(made, RowSql) and PASSES in made.query.part.text


def kinds_of(schema: StructType) -> dict[str, str]:
    """The type of each column by its name in lower case."""
    return {each.name.lower(): each.dataType.simpleString() for each in schema.fields}


def offset_of(error: BaseException) -> int | None:
    """The position in the text of SQL that an error of Spark names."""
    contexts = error.getQueryContext() if isinstance(error, PySparkException) else None
    start = contexts[0].startIndex() if contexts else -1
    return start if start >= 0 else None


def _is_written(found: CastFound, query: Query) -> bool:
    """Whether a cast is a call of the function with the name of its type: `bigint(x)`."""
    of_type = [
        each for each in query.calls if type_of_name(each.name) == type_of_name(found.target.lower()) is not None
    ]
    return any(_name_in(query.text(span)) == _name_in(found.expression) for each in of_type for span in each.arguments)


def _place_in(table: Table, found: CastFound, query: Query) -> Place | None:
    """The place of the column that is cast, in the SQL of a table."""
    if query.part.start < 0:
        return None  # an expression, whose place is known
    names = [each for each in query.references() if _name_in(each.parts[-1]) == _name_in(found.expression)]
    return table.place_in_sql(names[0].span[0]) if names else None


def _name_in(expression: str) -> str:
    """The last name of a column as SQL or Spark writes it."""
    return expression.rpartition(".")[2].strip("` ").lower()


def described(schema: StructType) -> str:
    return ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in schema.fields)


def stand_in(session: SparkSession, schema: StructType | str, *, is_stream: bool) -> DataFrame:
    """A frame without rows. Event time is metadata of a schema, so that a stand-in of a table has it as well."""
    reader = session.readStream.schema(schema) if is_stream else session.read.schema(schema)
    return reader.json(_empty_folder())


def source_stand_in(session: SparkSession, source: Source, load: Callable[[Source], DataFrame]) -> DataFrame:
    """A source without rows. A topic has the columns of its records and the parsed ones, because Spark would analyse
    the text of a format again for each flow. A static table whose columns are not declared is asked for them."""
    schema = source.format.schema
    if isinstance(source.origin, TopicOrigin):
        parsed = TEXT if source.format.encoding is Encoding.TEXT else BYTES
        parsed = parsed if schema is None else f"STRUCT<{_ddl(schema.columns, ': ')}>"
        ddl = f"{RECORD_DDL}, {PARSED} {parsed}, {REJECTED} STRING"
        return stand_in(session, ddl, is_stream=source.is_stream)
    if schema is not None:
        return stand_in(session, _ddl(schema.columns, " "), is_stream=source.is_stream)
    return stand_in(session, load(source).schema, is_stream=source.is_stream)


def _ddl(columns: Iterable[Column], separator: str) -> str:
    """The columns, each of which may be null, as those of a record that is not parsed are."""
    return ", ".join(f"{quoted(each.name)}{separator}{each.type.ddl}" for each in columns)


@cache
def _empty_folder() -> str:
    return tempfile.mkdtemp(prefix="odradek-empty-")
