"""`odradek pipeline preview`: rows of a step, computed from the last records of its topics."""

from __future__ import annotations

from itertools import islice
from typing import Any

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.failure import Failure
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import note, print_json
from odradek.cli.framework.parameter_types import RECORD_COUNT, TEXT
from odradek.cli.pipeline.loading import choose, load
from odradek.cli.pipeline.options import overridden, plain_override_options

DEFAULT_RECORDS = 100
SHOWN_ROWS = 20


@command(
    examples=[
        ("rows of a step", "odradek pipeline preview pipeline.yml readings"),
        ("from the last ten records of each partition", "odradek pipeline preview pipeline.yml readings --records 10"),
        ("all rows as JSON", "odradek pipeline preview pipeline.yml readings --limit 1000 --format json"),
    ]
)
@click.argument("file", metavar="FILE", type=click.Path())
@click.argument("step", metavar="STEP", type=TEXT)
@click.option(
    "--records", type=RECORD_COUNT, default=DEFAULT_RECORDS, show_default=True, metavar="N",
    help="Read the last N records of each partition.",
)  # fmt: skip
@click.option("--limit", type=RECORD_COUNT, default=SHOWN_ROWS, show_default=True, metavar="N", help="At most N rows.")
@plain_override_options
@format_option
def preview(
    file: str, step: str, records: int, limit: int, name: str | None, overrides: dict[str, Any], as_json: bool
) -> None:
    """Show rows of a source or step, computed once from the last records of its topics.

    Nothing is written, and checkpoints do not change. A group or a join includes only the records that were read.
    """
    from odradek.cli.pipeline.run import require_spark  # noqa: PLC0415 - help does not need it

    found = overridden(choose(file, load(file, None), name), overrides)
    require_spark()
    from odradek.cli.pipeline.sql import SETTINGS, print_table  # noqa: PLC0415
    from odradek.pipelines.spark.failures import PipelineError  # noqa: PLC0415
    from odradek.pipelines.spark.previewing import preview as previewed  # noqa: PLC0415

    try:
        with previewed(found, step, records, SETTINGS, note) as answer:
            if as_json:
                for row in islice(answer.rows, limit):
                    print_json(row)
            else:
                print_table(answer, limit)
    except PipelineError as error:
        raise Failure(str(error)) from None
