"""`odradek sql`: queries over topics, sources and views."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import json
import os
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.client.options import DEFAULT_BOOTSTRAP_SERVER
from odradek.cli.framework.commands import command
from odradek.cli.framework.options import option
from odradek.cli.framework.output import note, print_columns, print_json
from odradek.cli.framework.parameter_types import PAIR, RECORD_COUNT, TEXT
from odradek.cli.pipeline import options
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from odradek.pipelines.spark.query_tables import Answer, QueryContext

SERVER_VARIABLE = "ODRADEK_BOOTSTRAP_SERVER"
SHOWN_ROWS = 100  # of text output, unless --limit is given
SETTINGS = {"spark.sql.session.timeZone": "UTC"}


@command(
    ("views and tables of a pipeline", "odradek sql --definition p.yml 'select * from pump_state'"),
    ("a topic: key, value, timestamp, partition, offset, headers", "odradek sql 'select key, value from warnings'"),
    ("names with dashes in backticks", "odradek sql 'select count(*) from `rigs-dead-letters`'"),
    ("JSON as columns", "odradek sql 'select avg(pressure) from pressure' --infer pressure"),
    ("", "odradek sql 'select id from t' --schema 't=id BIGINT' --format csv"),
)
@click.argument("query", type=TEXT)
@option("--definition", "FILE", click.Path(), "Definition whose sources, steps and warehouse can be queried.")
@options.name_option
@option("--warehouse", "URL", TEXT, "Database whose tables can be queried, as a SQLAlchemy URL.")
@option(
    "--bootstrap-server -b", "HOST:PORT", TEXT,
    f"Brokers of the topics. Default: the definition's, ${SERVER_VARIABLE}, or {DEFAULT_BOOTSTRAP_SERVER}.",
)  # fmt: skip
@option("-X client_properties", "KEY=VALUE", PAIR, "Client property.", multiple=True)
@option("--schema schemas", "TOPIC=DDL", PAIR, "Columns of a topic of JSON records.", multiple=True)
@option("--infer", "TOPIC", TEXT, "Infer the columns of a topic of JSON records.", multiple=True)
@option("--limit", "N", RECORD_COUNT, f"At most N rows. Default: {SHOWN_ROWS} for text, otherwise all.")
@option("--master", "URL", TEXT, "Spark's master.")
@options.definition_options
@options.connection_options
@option(
    "--format output", None, click.Choice(["text", "json", "csv"]),
    "A table, one JSON object per line, or CSV.", default="text",
)  # fmt: skip
def sql(query: str, output: str, limit: int | None, master: str | None, **named: Any) -> None:
    """Query topics, sources and views in Spark's SQL, and tables of one database in its own.

    Small topics are read without Spark, if the package duckdb is installed (the extra odradek[sql]).

    The name of a table is looked up in the warehouse, then in the sources and steps of the definition, then in the
    topics.
    """
    options.require_packages()
    options.require_spark()
    from odradek.pipelines.spark.querying import answer

    with (
        options.pipeline_errors(),
        syntax_errors(query),
        answer(query, query_context(**named), SETTINGS, master, note) as found,
    ):
        if output == "text":
            print_table(found, SHOWN_ROWS if limit is None else limit)
        elif output == "json":
            for row in islice(found.rows, limit):
                print_json(row)
        else:
            print_csv(found.names, islice(found.rows, limit))


@contextlib.contextmanager
def syntax_errors(query: str) -> Iterator[None]:
    """Turns a syntax error of the query into a Failure."""
    from odradek.pipelines.sql.text import SqlError, position

    try:
        yield
    except SqlError as error:
        hint = f"; {error.hint}" if error.hint else "; put names with dashes in backticks" if "-" in query else ""
        line, column = position(query, error.offset)
        raise Failure(f"the query, line {line}, column {column}: {error.message}{hint}") from None


def query_context(
    definition: str | None, warehouse: str | None, bootstrap_server: str | None,
    client_properties: tuple[tuple[str, str], ...], schemas: tuple[tuple[str, str], ...], infer: tuple[str, ...],
) -> QueryContext:  # fmt: skip
    from odradek.pipelines.definition.ddl import DdlError, parse_ddl
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.spark.query_tables import QueryContext

    of_variable = os.environ.get(SERVER_VARIABLE) if definition is None else None
    bare = Pipeline("sql", bootstrap_servers=of_variable or DEFAULT_BOOTSTRAP_SERVER)
    found = options.with_connection(bare) if definition is None else options.chosen_pipeline(definition)
    for topic, ddl in schemas:
        try:
            parse_ddl(ddl)
        except DdlError as error:
            raise Failure(f"--schema of {topic}: {error.message}; {error.hint}") from None
    servers = bootstrap_server or found.bootstrap_servers
    kafka = {**found.kafka, **dict(client_properties)}
    found = dataclasses.replace(found, bootstrap_servers=servers, kafka=kafka)
    return QueryContext(found, warehouse, dict(schemas), frozenset(infer))


def print_table(found: Answer, limit: int) -> None:
    shown = list(islice(found.rows, limit + 1))
    print_columns(found.names, [[cell(row[name]) for name in found.names] for row in shown[:limit]])
    if len(shown) > limit:
        note(f"only the first {limit:,} rows are shown; --limit changes that")


def print_csv(names: list[str], rows: Iterable[dict[str, Any]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([cell(row[name]) for name in names] for row in rows)


def cell(value: Any) -> Any:
    if isinstance(value, bool | dict | list):
        return json.dumps(value, ensure_ascii=False)
    return value
