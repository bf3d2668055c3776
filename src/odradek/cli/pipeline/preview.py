"""`odradek pipeline preview`: rows of a step, computed from the last records of its topics."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import note, print_json
from odradek.cli.framework.parameter_types import RECORD_COUNT, TEXT
from odradek.cli.pipeline.loading import choose, load
from odradek.cli.pipeline.options import overridden, plain_override_options
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.pipelines.spark.querying import Answer

DEFAULT_RECORDS = 100
SHOWN_ROWS = 20


@command(
    examples=[
        ("rows of a step", "odradek pipeline preview pipeline.yml readings"),
        ("from the last ten records of each partition", "odradek pipeline preview pipeline.yml readings --records 10"),
        ("rows as records arrive", "odradek pipeline preview pipeline.yml readings --follow"),
        ("all rows as JSON", "odradek pipeline preview pipeline.yml readings --limit 1000 --format json"),
    ]
)
@click.argument("file", metavar="FILE", type=click.Path())
@click.argument("step", metavar="STEP", type=TEXT)
@click.option(
    "--records", type=RECORD_COUNT, default=DEFAULT_RECORDS, show_default=True, metavar="N",
    help="Read the last N records of each partition.",
)  # fmt: skip
@click.option(
    "--limit", type=RECORD_COUNT, default=SHOWN_ROWS, show_default=True, metavar="N",
    help="At most N rows; with --follow of each batch.",
)  # fmt: skip
@click.option("--follow", is_flag=True, help="Show new rows as records arrive, until Ctrl-C.")
@plain_override_options
@format_option
def preview(
    file: str, step: str, records: int, limit: int, follow: bool, name: str | None, overrides: dict[str, Any],
    as_json: bool,
) -> None:  # fmt: skip
    """Show rows of a source or step, computed once from the last records of its topics.

    Nothing is written, and checkpoints do not change. A group or a join includes only the records that were read. With
    --follow, a group is shown whenever it changes, and a session or an unmatched row of a join once it is final.
    """
    from odradek.cli.pipeline.run import check_brokers, require_spark

    found = overridden(choose(file, load(file, None), name), overrides)
    require_spark()
    check_brokers(found)
    from odradek.cli.pipeline.sql import SETTINGS, print_table
    from odradek.pipelines.spark.failures import PipelineError
    from odradek.pipelines.spark.previewing import follow as followed
    from odradek.pipelines.spark.previewing import preview as previewed

    def show(answer: Answer) -> None:
        if as_json:
            for row in islice(answer.rows, limit):
                print_json(row)
        else:
            print_table(answer, limit)

    def show_new(answer: Answer) -> None:
        rows = list(answer.rows)  # all are computed: Spark fails a stateful batch that is not read to its end
        if rows:
            show(replace(answer, rows=iter(rows)))
            sys.stdout.flush()

    try:
        if follow:
            followed(found, step, records, SETTINGS, note, show_new)
            return
        with previewed(found, step, records, SETTINGS, note) as answer:
            show(answer)
    except PipelineError as error:
        raise Failure(str(error)) from None
