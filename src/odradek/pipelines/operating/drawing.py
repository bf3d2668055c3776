"""Draws a pipeline's status on a terminal: a title, a row for each flow and sink, unmet expectations. Imports rich."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from odradek.conventions.figures import size_text
from odradek.pipelines.operating.figures import clock_text, count_text, duration_text, rate_text
from odradek.pipelines.operating.status import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import JustifyMethod, RenderableType

    from odradek.pipelines.operating.status import FlowStatus, PipelineStatus

FAINT = "bright_black"
COLORS = {
    State.STARTING: "cyan",
    State.RUNNING: "green",
    State.WAITING: "yellow",
    State.STOPPING: "cyan",
    State.STOPPED: "bright_black",
    State.FAILED: "red",
    State.DIED: "red",
}
FRAME_LINES = 2
TITLE_LINES = 1
LONG_LAG_S = 10.0  # a lag of more than the records of this time is highlighted


def draw(status: PipelineStatus, now_s: float, width: int, height: int) -> RenderableType:
    parts: list[RenderableType] = [title_line(status, now_s, width)]
    notes = note_lines(status, now_s)
    expectations = [each for each in status.expectations if each.rows]
    room = height - TITLE_LINES - len(notes) - 1
    flows = shown(len(status.flows), room - FRAME_LINES - 1 - (FRAME_LINES + 1 if expectations else 0))
    parts.append(flows_panel(status, flows, width, now_s))
    room -= flows + 1 + FRAME_LINES
    if expectations and room > FRAME_LINES:
        rows = shown(len(expectations), room - FRAME_LINES)
        table = plain_table(("step", 18), ("expectation", None), ("otherwise", 10), ("rows", 9), is_titled=False)
        for each in sorted(expectations, key=lambda one: -one.rows)[:rows]:
            table.add_row(each.step, each.name, Text(each.otherwise, FAINT), Text(f"{each.rows:,}", "bold"))
        parts.append(framed(table, f"expectations not met ({status.violations:,})", width))
        room -= rows + FRAME_LINES
    written = [(end, flow.name, rows) for flow in status.flows for end, rows in flow.written.items()]
    if written and room > FRAME_LINES:
        parts.append(sinks_panel(written, room - FRAME_LINES, width))
    return Group(*parts, *notes)


def shown(count: int, room: int) -> int:
    return max(1, min(count, room))


def framed(content: RenderableType, title: str, width: int) -> Panel:
    return Panel(
        content,
        title=Text(title, style="bold"),
        title_align="left",
        width=width,
        border_style=FAINT,
        box=box.ROUNDED,
        padding=(0, 1),
    )


def plain_table(*columns: tuple[str, int | None], is_titled: bool = True) -> Table:
    """A table of titles and widths. A column without a width gets the rest; columns after it are right-aligned."""
    table = Table(
        box=None, show_header=is_titled, header_style=FAINT, padding=(0, 2, 0, 0), pad_edge=False, expand=True
    )
    is_after = False
    for title, width in columns:
        if width is None:
            table.add_column(title, ratio=1, no_wrap=True, overflow="ellipsis")
            is_after = True
        else:
            side: JustifyMethod = "right" if is_after else "left"
            table.add_column(title, width=width, justify=side, no_wrap=True, overflow="ellipsis")
    return table


def title_line(status: PipelineStatus, now_s: float, width: int) -> Text:
    line = Text.assemble(
        (" Odradek ", "bold black on cyan"), (f"  {status.name}", "bold"), (f"  {status.state}", COLORS[status.state]),
        no_wrap=True,
    )  # fmt: skip
    since = status.running_since_s if status.state is State.RUNNING else None
    if since is not None:
        line.append(f" {clock_text(now_s - since)}", style=FAINT)
    facts = [status.engine]
    facts += [f"{status.restarts:,} restart{'' if status.restarts == 1 else 's'}"] if status.restarts else []
    facts += [f"pid {status.pid}"] if status.pid else []
    right = Text("  ".join(facts) + " ", style=FAINT)
    line.append(" " * max(2, width - line.cell_len - right.cell_len)).append_text(right)
    line.truncate(width, overflow="ellipsis")
    return line


def flows_panel(status: PipelineStatus, rows: int, width: int, now_s: float) -> Panel:
    has_watermark = any(flow.watermark for flow in status.flows)
    marks = (("behind", 7), ("late", 6)) if has_watermark else ()
    columns = (("flow", None), ("input/s", 7), ("done/s", 7), ("batch", 6), ("lag", 7), ("state", 16), *marks)
    table = plain_table(*columns)
    for flow in status.flows[:rows]:
        table.add_row(*flow_cells(flow), *(watermark_cells(flow, now_s) if has_watermark else ()))
    more = len(status.flows) - rows
    title = f"flows ({more} more than fit)" if more > 0 else "flows"
    content: RenderableType = table if status.flows else Text(status.note or "no flows", style=FAINT)
    return framed(content, title, width)


def sinks_panel(written: Sequence[tuple[str, str, int]], room: int, width: int) -> Panel:
    """The rows of each sink and view since the pipeline was started."""
    rows = shown(len(written), room)
    table = plain_table(("sink", 24), ("flow", None), ("rows", 12), is_titled=False)
    for end, flow, count in written[:rows]:
        table.add_row(end, Text(flow, FAINT), Text(f"{count:,}", "bold"))
    more = len(written) - rows
    return framed(table, f"rows written ({more} more sinks than fit)" if more > 0 else "rows written", width)


def flow_cells(flow: FlowStatus) -> list[Text]:
    lag = sum(flow.lag.values())
    is_behind = lag > max(flow.input_per_s, 1) * LONG_LAG_S
    rows = f"{count_text(flow.state_rows)} · " if flow.state_rows else ""
    state = f"{rows}{size_text(flow.state_bytes)}" if flow.state_bytes else "–"
    return [
        Text(flow.name),
        Text(rate_text(flow.input_per_s)),
        Text(rate_text(flow.processed_per_s), style="bold"),
        Text("–" if flow.batch is None else duration_text(flow.batch_ms)),
        Text(count_text(lag) if flow.lag else "–", style="bold red" if is_behind else "green" if flow.lag else ""),
        Text(state, style=FAINT if not flow.state_bytes else ""),
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
    unparsed = sum(each.unparsed for each in status.flows)
    if unparsed:
        lines.append(Text(f" {unparsed:,} record{'' if unparsed == 1 else 's'} did not parse", style=FAINT))
    if status.metrics_address is not None:
        lines.append(Text(f" metrics on http://{status.metrics_address}/metrics", style=FAINT))
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return lines
