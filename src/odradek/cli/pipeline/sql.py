"""`odradek sql`: topics, sources and views asked in SQL, by Spark."""

from __future__ import annotations

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
from odradek.cli.framework.failure import Failure
from odradek.cli.framework.output import note, print_columns, print_json
from odradek.cli.framework.parameter_types import PAIR, RECORD_COUNT, TEXT
from odradek.cli.pipeline.loading import choose, load, require_packages
from odradek.cli.pipeline.run import SPARK_PACKAGES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.pipelines.spark.querying import Answer, Surroundings

SERVER_VARIABLE = "ODRADEK_BOOTSTRAP_SERVER"
SHOWN_ROWS = 100  # on a terminal, unless asked for more
SETTINGS = {"spark.sql.session.timeZone": "UTC"}


@command(
    examples=[
        ("views and tables of a pipeline", "odradek sql --definition p.yml 'select * from pump_state'"),
        ("a topic: key, value, timestamp, partition, offset, headers", "odradek sql 'select key, value from warnings'"),
        ("names with dashes in backticks", "odradek sql 'select count(*) from `rigs-dead-letters`'"),
        ("JSON as columns", "odradek sql 'select avg(pressure) from pressure' --infer pressure"),
        ("", "odradek sql 'select id from t' --schema 't=id BIGINT' --format csv"),
    ]
)
@click.argument("query", type=TEXT)
@click.option("--definition", metavar="FILE", type=click.Path(), help="Its sources, steps and warehouse are tables.")
@click.option("--pipeline", "name", metavar="NAME", type=TEXT, help="Which one, of a Python file with several.")
@click.option("--warehouse", metavar="URL", type=TEXT, help="Database whose tables are asked (SQLAlchemy's URL).")
@click.option(
    "--bootstrap-server", "-b", metavar="HOST:PORT", type=TEXT,
    help=f"Brokers whose topics are tables; the definition's, ${SERVER_VARIABLE}, or {DEFAULT_BOOTSTRAP_SERVER}.",
)  # fmt: skip
@click.option("-X", "client_properties", metavar="KEY=VALUE", type=PAIR, multiple=True, help="A client property.")
@click.option("--schema", "schemas", metavar="TOPIC=DDL", type=PAIR, multiple=True, help="Columns of a topic of JSON.")
@click.option("--infer", metavar="TOPIC", type=TEXT, multiple=True, help="Find out the columns of a topic of JSON.")
@click.option("--limit", metavar="N", type=RECORD_COUNT, help=f"At most N rows; of text {SHOWN_ROWS} unless asked.")
@click.option("--master", metavar="URL", type=TEXT, help="Spark's master.")
@click.option(
    "--format", "output", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True,
    help="A table, one JSON object a line, or CSV.",
)  # fmt: skip
def sql(query: str, output: str, limit: int | None, master: str | None, **places: Any) -> None:
    """Ask topics, sources and views in Spark's SQL.

    A table is, by its name, a table or view of the warehouse, a source or step of the definition, or a topic.
    """
    require_packages()
    require_packages(SPARK_PACKAGES)
    check_query(query)
    from odradek.pipelines.spark.failures import PipelineError  # noqa: PLC0415 - help does not need Spark
    from odradek.pipelines.spark.querying import answer  # noqa: PLC0415

    try:
        with answer(query, surroundings(**places), SETTINGS, master, note) as found:
            if output == "text":
                print_table(found, SHOWN_ROWS if limit is None else limit)
            elif output == "json":
                for row in islice(found.rows, limit):
                    print_json(row)
            else:
                print_csv(found.names, islice(found.rows, limit))
    except PipelineError as error:
        raise Failure(str(error)) from None


def check_query(query: str) -> None:
    """Whether it is one, before anything is started for it."""
    from odradek.pipelines.definition.sql_text import SqlError, parse_query  # noqa: PLC0415 - help does not need it

    try:
        parse_query(query)
    except SqlError as error:
        hint = "; names with dashes go in backticks" if "-" in query else ""
        raise Failure(f"the query, line {error.line}, column {error.column}: {error.message}{hint}") from None


def surroundings(
    definition: str | None,
    name: str | None,
    warehouse: str | None,
    bootstrap_server: str | None,
    client_properties: tuple[tuple[str, str], ...],
    schemas: tuple[tuple[str, str], ...],
    infer: tuple[str, ...],
) -> Surroundings:
    from odradek.pipelines.definition.ddl import DdlError, parse_ddl  # noqa: PLC0415
    from odradek.pipelines.definition.model import Pipeline  # noqa: PLC0415
    from odradek.pipelines.spark.querying import Surroundings  # noqa: PLC0415

    found = Pipeline("sql") if definition is None else choose(definition, load(definition, None), name)
    for topic, ddl in schemas:
        try:
            parse_ddl(ddl)
        except DdlError as error:
            raise Failure(f"--schema of {topic}: {error.message}; {error.hint}") from None
    of_variable = os.environ.get(SERVER_VARIABLE) if definition is None else None
    servers = bootstrap_server or of_variable or found.bootstrap_servers
    kafka = {**found.kafka, **dict(client_properties)}
    found = dataclasses.replace(found, bootstrap_servers=servers, kafka=kafka)
    return Surroundings(found, warehouse, dict(schemas), frozenset(infer))


def print_table(found: Answer, limit: int) -> None:
    shown = list(islice(found.rows, limit + 1))
    print_columns(found.names, [[cell(row[name]) for name in found.names] for row in shown[:limit]])
    if len(shown) > limit:
        note(f"and more: these are the first {limit:,}; --limit shows others")


def print_csv(names: list[str], rows: Iterable[dict[str, Any]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([cell(row[name]) for name in names] for row in rows)


def cell(value: Any) -> Any:
    if isinstance(value, bool | dict | list):
        return json.dumps(value, ensure_ascii=False)
    return value
