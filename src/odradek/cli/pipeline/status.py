"""`odradek pipeline status`: a line for each started pipeline."""

from __future__ import annotations

import time

import click

from odradek.cli.framework.commands import OptionalArgument, command
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import note, print_columns, print_json, say
from odradek.cli.framework.parameter_types import TEXT
from odradek.cli.pipeline.started import statuses
from odradek.conventions.figures import size_text
from odradek.pipelines.operating.figures import clock_text, duration_text, rate_text
from odradek.pipelines.operating.status import ENDED, FlowStatus, PipelineStatus, State


@command(
    examples=[
        ("all started pipelines", "odradek pipeline status"),
        ("watermark, late rows, state and rows of each sink of one", "odradek pipeline status rigs"),
        ("all figures of one", "odradek pipeline status rigs --format json | jq ."),
    ]
)
@click.argument("names", metavar="NAME...", nargs=-1, cls=OptionalArgument, type=TEXT)
@format_option
def status(names: tuple[str, ...], as_json: bool) -> None:
    """Show state, rates and lag of the started pipelines; of named ones also of each flow and sink.

    Rates are records per second: written to the topics, and processed. LAG is that of the flow that is furthest behind.
    LATE counts rows that were dropped because their event time was before the watermark. `odradek pipeline forget`
    removes the entry of a pipeline that has ended.
    """
    found = statuses(names)
    if as_json:
        for each in found:
            print_json(each.as_object())
        return
    if not found:
        note("no pipeline was started on this machine; `odradek pipeline start FILE` starts one")
        return
    now_s = time.time()
    titles = ["NAME", "STATE", "PID", "FOR", "RESTARTS", "INPUT/S", "DONE/S", "BATCH", "LAG", "LATE", "NOT MET"]
    print_columns(titles, [status_row(each, now_s) for each in found])
    for each in found:
        if each.last_error is not None and each.state is not State.STOPPED:
            ago = "" if each.last_error_s is None else f" {clock_text(now_s - each.last_error_s)} ago"
            say(f"{each.name} failed{ago}: {each.last_error}")
    for each in found if names else ():
        print_details(each)


def print_details(each: PipelineStatus) -> None:
    """The flows of a pipeline: batches, lag, watermark, late rows and state; and the rows of each sink and view."""
    if each.flows:
        say(f"\n{each.name}: flows since it was started")
        titles = ["FLOW", "BATCHES", "LAG", "WATERMARK", "LATE", "STATE ROWS", "STATE SIZE"]
        print_columns(titles, [flow_row(flow) for flow in each.flows])
    written = [(end, flow.name, rows) for flow in each.flows for end, rows in flow.written.items()]
    if written:
        say(f"\n{each.name}: rows written since it was started")
        print_columns(["SINK", "FLOW", "ROWS"], written)


def flow_row(flow: FlowStatus) -> tuple[object, ...]:
    lag = sum(flow.lag.values()) if flow.lag else None
    size = size_text(flow.state_bytes) if flow.state_bytes else None
    return flow.name, flow.batches, lag, flow.watermark, flow.late_rows, flow.state_rows or None, size


def status_row(each: PipelineStatus, now_s: float) -> tuple[object, ...]:
    if each.state in ENDED:
        return each.name, each.state, None, None, each.restarts, None, None, None, None, None, None
    since_s = each.running_since_s if each.state is State.RUNNING else each.started_s
    age = "" if since_s is None else clock_text(now_s - since_s)
    rates = (rate_text(each.input_per_s), rate_text(each.processed_per_s), duration_text(each.batch_ms))
    return each.name, each.state, each.pid, age, each.restarts, *rates, each.lag, each.late_rows, each.violations
