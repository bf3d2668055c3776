"""Answers queries of `odradek sql`: the database that has the tables, DuckDB, or a Spark session of its own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from odradek.pipelines.spark.query_tables import Catalog
from odradek.pipelines.spark.sessions.failures import SPARK_ERRORS, PipelineError, plain_message
from odradek.pipelines.spark.small_reads import NeedsSpark, answer_without_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from odradek.pipelines.spark.query_tables import QueryContext
    from odradek.pipelines.spark.small_reads import Answer


@contextmanager
def answer(
    text: str, context: QueryContext, settings: Mapping[str, str], master: str | None, say: Callable[[str], None]
) -> Iterator[Answer]:
    """Runs a query. All names are resolved before Spark is started."""
    catalog = Catalog(context)
    reason, found = "--master is given", None
    if master is None:
        try:
            found = answer_without_spark(catalog, text)
        except NeedsSpark as why:
            reason = str(why)
    if found is not None:
        yield found
        return
    with answer_by_spark(text, catalog, {**settings, **context.pipeline.spark}, master, reason, say) as answered:
        yield answered


@contextmanager
def answer_by_spark(
    text: str, catalog: Catalog, settings: Mapping[str, str], master: str | None, reason: str,
    say: Callable[[str], None],
) -> Iterator[Answer]:  # fmt: skip
    from odradek.pipelines.spark.query_frames import ask  # noqa: PLC0415 - takes a second, for queries by Spark only
    from odradek.pipelines.spark.sessions.session import start_session  # noqa: PLC0415 - the same

    tables = catalog.tables(text)
    say(f"Spark runs this query: {reason}")
    has_connector = any(map(catalog.reads_topics, tables.values()))
    try:
        session = start_session("odradek sql", settings, master, say, has_connector=has_connector)
    except PySparkException as error:
        raise PipelineError(f"Spark did not start: {plain_message(error)}; it needs Java 17") from error
    try:
        yield ask(session, text, catalog, tables)
    except SPARK_ERRORS as error:
        raise PipelineError(plain_message(error)) from error
    finally:
        session.stop()
