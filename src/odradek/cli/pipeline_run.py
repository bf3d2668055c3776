"""`odradek pipeline run`: a pipeline in the foreground, with a line for each batch."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.commands import command
from odradek.cli.failure import Failure
from odradek.cli.interrupt import stop_on_interrupt
from odradek.cli.options import format_option
from odradek.cli.output import print_json, say
from odradek.cli.parameter_types import POSITIVE, TEXT
from odradek.cli.pipeline import CONNECTORS, ENGINES, choose, load

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.spark.progress import BatchReport

SPARK_PACKAGES = {"pyspark": "PySpark", "pandas": "pandas", "pyarrow": "PyArrow", "sqlalchemy": "SQLAlchemy"}


@command(
    "run",
    examples=[
        ("until Ctrl-C", "odradek pipeline run pipeline.yml"),
        ("what is there, and no more", "odradek pipeline run pipeline.yml --until-caught-up"),
        ("once, as a batch", "odradek pipeline run pipeline.yml --engine batch"),
        ("on a Spark cluster", "odradek pipeline run pipeline.yml --master spark://host:7077"),
    ],
)
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--engine", type=click.Choice(ENGINES), help="Instead of the definition's own.")
@click.option("--pipeline", "name", metavar="NAME", type=TEXT, help="Which one, of a Python file with several.")
@click.option("--bootstrap-server", "-b", metavar="HOST:PORT", type=TEXT, help="Instead of the definition's brokers.")
@click.option("--master", metavar="URL", type=TEXT, help="Spark's master, such as local[2] or spark://host:7077.")
@click.option("--checkpoints", metavar="DIR", type=click.Path(), help="Where it notes how far it is.")
@click.option("--warehouse", metavar="URL", type=TEXT, help="Database of tables and views (SQLAlchemy's URL).")
@click.option("--connector", type=click.Choice(CONNECTORS), help="Spark's own, or the one that needs no jars.")
@click.option("--seconds", type=POSITIVE, metavar="N", help="Stop after N seconds.")
@click.option("--until-caught-up", is_flag=True, help="Stop when everything that is there now is done.")
@click.option("--stop-with", type=int, hidden=True, help="A descriptor; when its other end is closed, stop.")
@format_option
def run(
    file: str, engine: str | None, name: str | None, seconds: float | None, until_caught_up: bool,
    stop_with: int | None, as_json: bool, **others: Any,
) -> None:  # fmt: skip
    """Run a pipeline until Ctrl-C.

    It goes on where it stopped the last time. One line tells of each batch with rows.
    """
    found = overridden(choose(file, load(file, engine), name), **others)
    missing = [package for module, package in SPARK_PACKAGES.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise Failure(f"pipelines need {' and '.join(missing)}; install them with: pip install 'odradek[pipelines]'")
    from odradek.pipelines.spark.failures import PipelineError  # noqa: PLC0415 - help does not need Spark
    from odradek.pipelines.spark.launching import Wishes, run_pipeline  # noqa: PLC0415

    is_stopped = threading.Event()
    if stop_with is not None:
        threading.Thread(target=stop_with_owner, args=(stop_with, is_stopped), daemon=True).start()
    with stop_on_interrupt(is_stopped):
        try:
            run_pipeline(
                found,
                Wishes(seconds, until_caught_up),
                is_stopped.is_set,
                lambda line: click.echo(line, err=True),
                lambda report: print_report(report, as_json),
            )
        except PipelineError as error:
            raise Failure(str(error)) from None


def stop_with_owner(descriptor: int, is_stopped: threading.Event) -> None:
    """Reading ends when the owner of the other end is gone."""
    while os.read(descriptor, 1):
        pass
    is_stopped.set()


def overridden(
    found: Pipeline,
    bootstrap_server: str | None,
    master: str | None,
    checkpoints: str | None,
    warehouse: str | None,
    connector: str | None,
) -> Pipeline:
    """With what the command line says instead."""
    from odradek.pipelines.definition.vocabulary import Connector  # noqa: PLC0415 - help does not need it

    changes: dict[str, Any] = {
        "bootstrap_servers": bootstrap_server,
        "master": master,
        "checkpoints": None if checkpoints is None else str(Path(checkpoints).absolute()),
        "warehouse": warehouse,
        "connector": None if connector is None else Connector(connector),
    }
    return dataclasses.replace(found, **{key: value for key, value in changes.items() if value is not None})


def print_report(report: BatchReport, as_json: bool) -> None:
    if as_json:
        print_json(dataclasses.asdict(report))
    elif report.rows != 0:
        say(str(report))
