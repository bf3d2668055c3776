"""`odradek pipeline jars`: the files that Spark needs, for machines that reach no registry."""

from __future__ import annotations

from pathlib import Path

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import print_result, say
from odradek.cli.framework.parameter_types import TEXT
from odradek.cli.pipeline.options import pipeline_errors, require_packages, require_spark
from odradek.conventions.figures import count_text


@command(
    examples=[
        ("where a registry is reached", "odradek pipeline jars spark-jars"),
        ("elsewhere, with a copy of it", "ODRADEK_SPARK_JARS=spark-jars odradek pipeline run pipeline.yml"),
    ]
)
@click.argument("folder", metavar="DIR", type=TEXT)
@format_option
def jars(folder: str, as_json: bool) -> None:
    """Fetch the jars that Spark needs, for a machine that reaches no registry.

    The Kafka connector for the installed PySpark, the JDBC drivers of PostgreSQL and SQLite and, with PySpark 4.1,
    Delta and Iceberg. Copy DIR to the other machine, and name it in ODRADEK_SPARK_JARS.
    """
    require_packages()
    require_spark()
    import pyspark

    from odradek.pipelines.spark.sessions.jars import GIVEN_FOLDER, fetch_all

    with pipeline_errors():
        files = fetch_all(Path(folder), say)
    text = (
        f"{folder} has {count_text(len(files), 'jar')} for PySpark {pyspark.__version__}: {', '.join(files)}\n"
        f"on the other machine: export {GIVEN_FOLDER}={folder}"
    )
    print_result({"folder": folder, "pyspark": pyspark.__version__, "jars": files}, text, as_json=as_json)
