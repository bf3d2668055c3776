"""Draws a pipeline's status on a terminal: a title, a row for each flow and sink, unmet expectations. Imports rich."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from odradek.conventions.figures import count_text as counted
from odradek.conventions.figures import size_text
from odradek.pipelines.operating.figures import clock_text, count_text, duration_text, rate_text
from odradek.pipelines.operating.status import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import JustifyMethod, RenderableType

    from odradek.pipelines.operating.status import FlowStatus, PipelineStatus

FAINT = "bright_black"
COLORS = {State.RUNNING: "green", State.WAITING: "yellow", State.STOPPED: FAINT, State.FAILED: "red", State.DIED: "red"}
LONG_LAG_S = 10.0  # a lag of more than the records of this time is highlighted
# Widths of columns by title; a column without a width gets the rest, and columns after it are right-aligned.
FLOWS = {"flow": None, "input/s": 7, "done/s": 7, "batch": 6, "lag": 7, "state": 16}
WATERMARKS: dict[str, int | None] = {"behind": 7, "late": 6}
EXPECTATIONS = {"step": 18, "expectation": None, "otherwise": 10, "rows": 9}
SINKS = {"sink": 24, "flow": None, "rows": 12}


def draw(status: PipelineStatus, now_s: float, width: int) -> RenderableType:
    """Notes, flows, expectations that are not met, and sinks; a terminal without room for all shows the first."""
    has_watermark = any(flow.watermark for flow in status.flows)
    flows = [flow_cells(each) + (watermark_cells(each, now_s) if has_watermark else []) for each in status.flows]
    unmet = sorted((each for each in status.expectations if each.rows), key=lambda each: -each.rows)
    expectations = [(each.step, each.name, Text(each.otherwise, FAINT), bold(each.rows)) for each in unmet]
    sinks = [(end, Text(flow.name, FAINT), bold(rows)) for flow in status.flows for end, rows in flow.written.items()]
    table = table_of(FLOWS | WATERMARKS if has_watermark else FLOWS, flows, is_titled=True)
    parts = [framed(table if flows else Text(status.note or "no flows", style=FAINT), "flows", width)]
    for title, columns, rows in (
        (f"expectations not met ({status.violations:,})", EXPECTATIONS, expectations),
        ("rows written", SINKS, sinks),
    ):
        parts += [framed(table_of(columns, rows, is_titled=False), title, width)] if rows else []
    return Group(title_line(status, now_s, width), *note_lines(status, now_s), *parts)


def bold(rows: int) -> Text:
    return Text(f"{rows:,}", "bold")


def framed(content: RenderableType, title: str, width: int) -> RenderableType:
    return Panel(
        content, title=Text(title, "bold"), title_align="left", width=width, border_style=FAINT, box=box.ROUNDED,
        padding=(0, 1),
    )  # fmt: skip


def table_of(columns: Mapping[str, int | None], rows: Sequence[Sequence[RenderableType]], *, is_titled: bool) -> Table:
    table = Table(
        box=None, show_header=is_titled, header_style=FAINT, padding=(0, 2, 0, 0), pad_edge=False, expand=True
    )
    widest = [width is None for width in columns.values()].index(True)
    for index, (title, width) in enumerate(columns.items()):
        side: JustifyMethod = "right" if index > widest else "left"
        ratio = 1 if width is None else None
        table.add_column(title, ratio=ratio, width=width, justify=side, no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*row)
    return table


def title_line(status: PipelineStatus, now_s: float, width: int) -> RenderableType:
    state = Text(f"  {status.state}", COLORS.get(status.state, "cyan"))
    line = Text.assemble((" Odradek ", "bold black on cyan"), (f"  {status.name}", "bold"), state, no_wrap=True)
    if status.state is State.RUNNING and status.running_since_s is not None:
        line.append(f" {clock_text(now_s - status.running_since_s)}", style=FAINT)
    facts = [status.engine]
    facts += [counted(status.restarts, "restart")] if status.restarts else []
    facts += [f"pid {status.pid}"] if status.pid else []
    right = Text("  ".join(facts) + " ", style=FAINT)
    line.append(" " * max(2, width - line.cell_len - right.cell_len)).append_text(right)
    line.truncate(width, overflow="ellipsis")
    return line


def flow_cells(flow: FlowStatus) -> list[Text]:
    lag = sum(flow.lag.values())
    is_behind = lag > max(flow.input_per_s, 1) * LONG_LAG_S
    rows = f"{count_text(flow.state_rows)} · " if flow.state_rows else ""
    return [
        Text(flow.name),
        Text(rate_text(flow.input_per_s)),
        Text(rate_text(flow.processed_per_s), style="bold"),
        Text("–" if flow.batch is None else duration_text(flow.batch_ms)),
        Text(count_text(lag), "bold red" if is_behind else "green") if flow.lag else Text("–"),
        Text(f"{rows}{size_text(flow.state_bytes)}") if flow.state_bytes else Text("–", FAINT),
    ]


def watermark_cells(flow: FlowStatus, now_s: float) -> list[Text]:
    """How far the watermark is behind the clock, and the rows that were later than it."""
    if flow.watermark is None:
        return [Text("–", style=FAINT), Text("–", style=FAINT)]
    behind = now_s - datetime.fromisoformat(flow.watermark).timestamp()
    return [Text(clock_text(behind)), Text(count_text(flow.late_rows), style="bold" if flow.late_rows else FAINT)]


def note_lines(status: PipelineStatus, now_s: float) -> list[Text]:
    lines: list[Text] = []
    if status.last_error is not None:
        ago = "" if status.last_error_s is None else f"{clock_text(now_s - status.last_error_s)} ago: "
        lines.append(Text.assemble((" last error ", "red"), (ago, FAINT), status.last_error))
    if status.next_try_s is not None:
        lines.append(Text(f" retrying in {clock_text(status.next_try_s - now_s + 1)}", style="yellow"))
    if status.unparsed:
        lines.append(Text(f" {counted(status.unparsed, 'record')} did not parse", style=FAINT))
    if status.metrics_address is not None:
        lines.append(Text(f" metrics on http://{status.metrics_address}/metrics", style=FAINT))
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return lines
