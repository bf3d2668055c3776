"""Draws a live view on a terminal of 80 or more columns, exactly as high as the terminal. Imports rich."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from odradek.conventions.dataclass import dataclass
from odradek.examples.live_view.definition import Figures, Side, Topics
from odradek.examples.live_view.drawing_panels import FAINT, FRAME_LINES, draw_panel, framed, size_of
from odradek.examples.live_view.layout import allocate
from odradek.examples.live_view.text import duration_text, servers_text
from odradek.pipelines.operating.figures import clock_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from odradek.examples.live_view.definition import Panel
    from odradek.examples.live_view.model import LiveViewModel
    from odradek.examples.live_view.stages import Stage, Stages

WIDE = 110
LEFT_SHARE = 62  # per cent of a wide terminal
NARROW_LEFT_SHARE = 55
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


@dataclass(frozen=True, slots=True)
class Frame:
    """The size of the terminal, and the text around the panels: the bootstrap servers in the first line; the address of
    the console and a hint in the last, or instead of the hint why the pipeline does not run."""

    width: int
    height: int
    bootstrap_servers: str
    hint: str
    console: str = ""
    failure: str = ""


def draw(model: LiveViewModel, now_s: float, frame: Frame) -> RenderableType:
    unreachable = "broker unreachable " if model.is_broker_unreachable else ""
    title = title_line(model.view.title, now_s - model.began_s, frame, unreachable)
    room = frame.height - 2
    body = wide_body if frame.width >= WIDE else narrow_body
    if model.read_failure and not frame.failure:
        frame = replace(frame, failure=f"not read: {model.read_failure}")
    return Group(title, body(model, now_s, frame.width, room), hint_line(frame))


def wide_body(model: LiveViewModel, now_s: float, width: int, room: int) -> RenderableType:
    left = width * LEFT_SHARE // 100
    columns = [
        column(model, now_s, [panel for panel in model.view.panels if panel.side is side], column_width, room)
        for side, column_width in ((Side.LEFT, left), (Side.RIGHT, width - left))
    ]
    return side_by_side(columns[0], columns[1], left, width)


def narrow_body(model: LiveViewModel, now_s: float, width: int, room: int) -> RenderableType:
    """The first table of topics beside the first figures; below them the other panels at full width."""
    panels = list(model.view.panels)
    topics = next((panel for panel in panels if isinstance(panel.content, Topics)), None)
    figures = next((panel for panel in panels if isinstance(panel.content, Figures)), None)
    if topics is None or figures is None:
        return column(model, now_s, panels, width, room)
    left = width * NARROW_LEFT_SHARE // 100
    lines = min(room, max(size_of(model, topics).wanted, size_of(model, figures).wanted))
    upper = side_by_side(
        draw_panel(model, now_s, topics, left, lines),
        draw_panel(model, now_s, figures, width - left, lines),
        left,
        width,
    )
    others = [panel for panel in panels if panel is not topics and panel is not figures]
    return Group(upper, column(model, now_s, others, width, room - lines))


def column(model: LiveViewModel, now_s: float, panels: Sequence[Panel], width: int, room: int) -> RenderableType:
    heights = allocate(room, [size_of(model, panel) for panel in panels])
    return Group(
        *[
            draw_panel(model, now_s, panel, width, lines)
            for panel, lines in zip(panels, heights, strict=True)
            if lines
        ]
    )  # fmt: skip


def side_by_side(first: RenderableType, second: RenderableType, left: int, width: int) -> Table:
    grid = Table.grid()
    grid.add_column(width=left)
    grid.add_column(width=width - left)
    grid.add_row(first, second)
    return grid


def title_line(title: str, elapsed_s: float, frame: Frame, alarm: str = "") -> Text:
    right = f"{servers_text(frame.bootstrap_servers)}  {clock_text(elapsed_s)} "
    line = Text.assemble((" Odradek ", "bold black on cyan"), (f"  {title}", "bold"), no_wrap=True)
    tail = Text.assemble((alarm, "bold red"), (right, FAINT))
    line.truncate(max(0, frame.width - tail.cell_len - 2), overflow="ellipsis")
    line.append(" " * max(0, frame.width - line.cell_len - tail.cell_len)).append_text(tail)
    line.truncate(frame.width, overflow="ellipsis")
    return line


def hint_line(frame: Frame) -> Text:
    line = Text.assemble((" Ctrl-C ", "bold"), ("stops", FAINT))
    if frame.console:
        line.append("   console ", FAINT).append(frame.console, "bold cyan")
    if frame.failure:
        line.append(f"   {frame.failure}", "bold red")
    elif frame.hint:
        line.append(f"   {frame.hint}", FAINT)
    line.no_wrap, line.overflow = True, "ellipsis"
    line.truncate(frame.width, overflow="ellipsis")
    return line


def draw_start(title: str, stages: Stages, now_s: float, frame: Frame) -> RenderableType:
    """What is starting, with seconds, above a picture of the pipeline."""
    began_s = stages.stages[0].began_s
    elapsed_s = 0.0 if began_s is None else now_s - began_s
    rows = [stage_line(stage, now_s) for stage in stages.stages]
    parts: list[RenderableType] = [framed(Group(*rows), "starting", frame.width, len(rows) + FRAME_LINES)]
    room = frame.height - 2 - len(rows) - FRAME_LINES
    if stages.picture and room > FRAME_LINES:
        shown = stages.picture[: room - FRAME_LINES]
        lines = [Text(line, no_wrap=True, overflow="ellipsis") for line in shown]
        parts.append(framed(Group(*lines), "the pipeline", frame.width, room))
    elif room > 0:
        parts.append(Text("\n" * (room - 1)))
    return Group(title_line(title, elapsed_s, frame), *parts, hint_line(frame))


def stage_line(stage: Stage, now_s: float) -> Text:
    seconds = stage.seconds(now_s)
    took = "" if seconds is None else duration_text(round(seconds, 1) * 1000)
    if seconds is None:
        mark, style = "·", FAINT
    elif stage.ended_s is None:
        mark, style = SPINNER[int(now_s * 8) % len(SPINNER)], "bold cyan"
    else:
        mark, style = "✓", "green"
    line = Text.assemble((f"{mark} ", style), (f"{stage.name:<14}", style if seconds is None else ""))
    line.append(f"{took:>8}  ", style="bold" if stage.ended_s is None else "").append(stage.note, style=FAINT)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line
