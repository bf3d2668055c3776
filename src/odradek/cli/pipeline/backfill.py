"""`odradek pipeline backfill` and `rebuild`: process a range of the log as a batch, and rebuild views."""

from __future__ import annotations

import dataclasses
import signal
import threading
from typing import TYPE_CHECKING

import click

from odradek.cli.framework.commands import OptionalArgument, command
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import note, print_result
from odradek.cli.framework.parameter_types import TEXT
from odradek.cli.pipeline.options import chosen_pipeline, pipeline_errors, pipeline_options, require_spark
from odradek.cli.pipeline.reset import parse_range
from odradek.cli.pipeline.run import check_brokers, launch
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline, Sink, View
    from odradek.pipelines.spark.progress import BatchReport


@command(
    examples=[
        ("a day", "odradek pipeline backfill p.yml --from 2026-01-30T00:00 --to 2026-01-31T00:00"),
        ("the last hour, into one sink", "odradek pipeline backfill pipeline.yml --from -1h --only archive"),
        ("some offsets", "odradek pipeline backfill p.yml --from rigs:0:1000 --to rigs:0:2000"),
    ]
)
@click.argument("file", metavar="FILE", type=click.Path())
@click.option(
    "--from", "from_positions", metavar="POSITION", type=TEXT, multiple=True, required=True,
    help="Start: earliest, a time, or TOPIC:PARTITION:OFFSET (repeatable).",
)  # fmt: skip
@click.option(
    "--to", "to_positions", metavar="POSITION", type=TEXT, multiple=True,
    help="End, exclusive: latest (default), a time, or TOPIC:PARTITION:OFFSET (repeatable).",
)  # fmt: skip
@click.option("--only", metavar="NAME", type=TEXT, multiple=True, help="Only this sink or view. Repeatable.")
@pipeline_options
@format_option
def backfill(
    file: str, from_positions: tuple[str, ...], to_positions: tuple[str, ...], only: tuple[str, ...], as_json: bool
) -> None:  # fmt: skip
    """Process a range of the log again as one batch. The stream may be running.

    The checkpoints of the stream do not change. Views that cannot be computed from a part of the log are skipped: those
    of aggregates, and those of latest rows without an order.
    """
    found = chosen_pipeline(file, "batch")
    require_spark()
    span = parse_range(from_positions, to_positions, found)
    chosen = narrowed(found, only)
    check_brokers(found)
    from odradek.pipelines.operating.effects import backfill_effects
    from odradek.pipelines.spark.launching import RunCallbacks, RunOptions

    note(f"{found.name} {' '.join(('from', *from_positions, 'to', *(to_positions or ('the end',))))}")
    for line in backfill_effects(chosen.sinks):
        note(f"  {line}")

    def report(done: BatchReport) -> None:
        print_result(dataclasses.asdict(done), str(done), as_json=as_json)

    is_stopped = threading.Event()
    with stop_on_interrupt(is_stopped, signal.SIGTERM):
        launch(chosen, RunOptions(span=span), is_stopped, RunCallbacks(note, report))


def narrowed(found: Pipeline, only: tuple[str, ...]) -> Pipeline:
    """The pipeline with the chosen sinks and views, without views that need the whole log."""
    from odradek.pipelines.operating.effects import is_safe_to_backfill

    names = {sink.name for sink in found.sinks} | {view.name for view in found.views}
    for each in only:
        if each not in names:
            raise Failure(f"{found.name} has no sink or view {each}; it has {', '.join(sorted(names))}")
    meant = set(only) or names
    for view in found.views:
        if view.name in meant and not is_safe_to_backfill(view):
            why = f"view {view.name} needs the whole log; use `odradek pipeline rebuild`"
            if view.name in only:
                raise Failure(why)
            note(f"{why} (skipped)")
    sinks = tuple(each for each in found.sinks if each.name in meant)
    views = tuple(each for each in found.views if each.name in meant and is_safe_to_backfill(each))
    return dataclasses.replace(found, sinks=sinks, views=views)


@command(
    examples=[
        ("all views", "odradek pipeline rebuild pipeline.yml"),
        ("one of them, or a table", "odradek pipeline rebuild pipeline.yml pump_state"),
    ]
)
@click.argument("file", metavar="FILE", type=click.Path())
@click.argument("names", metavar="NAME...", nargs=-1, cls=OptionalArgument, type=TEXT)
@pipeline_options
@format_option
def rebuild(file: str, names: tuple[str, ...], as_json: bool) -> None:
    """Rebuild views and tables of a stopped pipeline from the log.

    NAME is a view or a sink that writes a table; the default is all views. Each is built in a new table, which
    replaces the old one in one transaction: readers see the old rows or the new ones.
    """
    found = chosen_pipeline(file, "standard")
    require_spark()
    from odradek.pipelines.spark.rebuilding import rebuild_views, rebuildable

    known = rebuildable(found)
    for each in names:
        if each not in known:
            raise Failure(f"{found.name} has no view or table sink {each}; it has {', '.join(known) or 'none'}")
    chosen = [known[each] for each in dict.fromkeys(names)] or list(found.views)
    if not chosen:
        raise Failure(f"{found.name} has no views" + (f"; name a table: {', '.join(known)}" if known else ""))

    check_brokers(found)

    def done(end: View | Sink, rows: int) -> None:
        kind = "view" if end in found.views else "sink"
        result = {"pipeline": found.name, kind: end.name, "rows": rows}
        print_result(result, f"{end.name}: {count_text(rows, 'row')}", as_json=as_json)

    with pipeline_errors():
        rebuild_views(found, chosen, note, done)
