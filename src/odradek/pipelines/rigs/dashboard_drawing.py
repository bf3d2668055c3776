"""Draws the dashboard on a terminal of 80 or more columns. Imports rich."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from odradek.pipelines.rigs.dashboard_model import CURRENT_S, PumpState, state_of_rule
from odradek.pipelines.rigs.dashboard_text import clock_text, duration_text, lag_text, number_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from odradek.pipelines.rigs.dashboard_model import DashboardModel, Episode

WIDE = 110
FRAME_LINES = 2  # lines of a panel in addition to its rows
TOP_LINES = 6 + FRAME_LINES
NARROW_LETTERS = 3
LEAST_WARNINGS = 3
BARS = " ▁▂▃▄▅▆▇█"
COLORS = {
    PumpState.CALM: "green",
    PumpState.RISING: "yellow",
    PumpState.OVER_LIMIT: "red",
    PumpState.SILENT: "magenta",
}


def draw(model: DashboardModel, now_s: float, address: str, width: int, height: int) -> RenderableType:
    is_wide = width >= WIDE
    left = width * 65 // 100 if is_wide else width * 55 // 100
    below = height - 1 - TOP_LINES - 1  # the title, the upper panels, and a line for the cursor
    rows = below - FRAME_LINES - 1 - (0 if is_wide else NARROW_LETTERS + FRAME_LINES)
    rows = max(LEAST_WARNINGS, rows)
    upper = side_by_side(topics_panel(model, now_s, left), condition_panel(model, now_s, width - left), left, width)
    warnings = warnings_panel(model, now_s, rows, width=left if is_wide else width)
    letters = letters_panel(model, rows + 1 if is_wide else NARROW_LETTERS, width=width - left if is_wide else width)
    lower = side_by_side(warnings, letters, left, width) if is_wide else Group(warnings, letters)
    return Group(title_line(model, now_s, address, width), upper, lower)


def side_by_side(first: RenderableType, second: RenderableType, left: int, width: int) -> Table:
    grid = Table.grid()
    grid.add_column(width=left)
    grid.add_column(width=width - left)
    grid.add_row(first, second)
    return grid


def framed(content: RenderableType, title: str, width: int, *, lines: int) -> Panel:
    return Panel(
        content,
        title=Text(title, style="bold"),
        title_align="left",
        width=width,
        height=lines + FRAME_LINES,
        border_style="bright_black",
        box=box.ROUNDED,
        padding=(0, 1),
    )


def plain_table(*columns: tuple[str, int | None], is_titled: bool = True) -> Table:
    """A table. One column without a width gets the rest and is truncated. Numbers are right-aligned."""
    table = Table(
        box=None, show_header=is_titled, header_style="bright_black", padding=(0, 2, 0, 0), pad_edge=False, expand=True
    )
    for title, width in columns:
        if width is None:
            table.add_column(title, ratio=1, no_wrap=True, overflow="ellipsis")
        else:
            table.add_column(title, width=width, justify="right", no_wrap=True)
    return table


def title_line(model: DashboardModel, now_s: float, address: str, width: int) -> Text:
    line = Text.assemble(
        (" Odradek ", "bold black on cyan"), ("  oil rigs, from sensor to alert", "bold"), no_wrap=True
    )
    right = Text.assemble(
        ("broker unreachable " if model.is_broker_unreachable else "", "bold red"),
        (f"{address}  {clock_text(now_s - model.began_s)} ", "bright_black"),
    )
    gap = max(2, width - line.cell_len - right.cell_len)
    line.append(" " * gap).append_text(right)
    line.truncate(width, overflow="ellipsis")
    return line


def topics_panel(model: DashboardModel, now_s: float, width: int) -> Panel:
    spark_width = max(0, min(30, width - 46))
    columns: list[tuple[str, int | None]] = [("topic", None), ("records", 10), ("per s", 7)]
    table = plain_table(*columns, *([("last minute", spark_width)] if spark_width >= 11 else []))
    for topic in model.topics.all:
        is_source = topic == model.topics.source
        cells = [
            Text.assemble(("→ " if is_source else "  ", "cyan"), (topic, "bold" if is_source else "")),
            Text(f"{model.total(topic):,}"),
            Text(f"{model.rate(topic, now_s):,.0f}", style="bold"),
        ]
        if spark_width >= 11:
            cells.append(Text(spark_line(model.rate_history(topic, now_s, spark_width)), style="cyan"))
        table.add_row(*cells)
    return framed(table, "topics", width, lines=6)


def condition_panel(model: DashboardModel, now_s: float, width: int) -> Panel:
    spread = model.latencies_ms(now_s)
    states = model.pump_states(now_s)
    label = "bright_black"
    latency = Text.assemble(
        ("p50 ", label), (duration_text(spread.get("p50")), "bold green"),
        ("  p99 ", label), (duration_text(spread.get("p99")), "bold green"),
    )  # fmt: skip
    calm, rising, over_limit, silent = [
        Text(f"{count:,} {state}", style=COLORS[state]) for state, count in states.items()
    ]
    rows = [
        Text.assemble(("event → alert, last minute", label)),
        latency,
        Text.assemble(("lag ", label), (lag_text(model, now_s), "bold"), (" records" if not model.lag else "", label)),
        share_bar(states, width - 4),
        Text.assemble((f"{sum(states.values()):,} pumps  ", "bold"), calm, "  ", silent),
        Text.assemble(over_limit, "  ", rising),
    ]
    for row in rows:
        row.no_wrap, row.overflow = True, "ellipsis"
    return framed(Group(*rows), "pipeline", width, lines=6)


def share_bar(states: dict[PumpState, int], width: int) -> Text:
    """A bar with the share of pumps in each state; every state that occurs gets at least one block."""
    total = sum(states.values())
    if not total:
        return Text("─" * width, style="bright_black")
    widths = {state: max(1, count * width // total) if count else 0 for state, count in states.items()}
    widest = max(widths, key=lambda state: widths[state])
    widths[widest] += width - sum(widths.values())
    return Text.assemble(*[("█" * widths[state], COLORS[state]) for state in states])


def warnings_panel(model: DashboardModel, now_s: float, rows: int, width: int) -> Panel:
    table = plain_table(
        ("pump", 6), ("rule", None), ("value", 6), ("limit", 6), ("for", 7), ("times", 6), ("latency", 7)
    )
    for episode in model.latest_episodes(rows):
        table.add_row(*warning_cells(episode, now_s))
    content: RenderableType = table if model.episodes else Text("none", style="bright_black")
    return framed(content, f"latest warnings ({model.rules.total():,})", width, lines=rows + 1)


def warning_cells(episode: Episode, now_s: float) -> list[Text]:
    is_current = now_s - episode.last_s <= CURRENT_S
    style = "" if is_current else "bright_black"
    rule_style = rule_color(episode.rule) if is_current else "bright_black"
    return [
        Text(episode.pump, style=style),
        Text(episode.rule, style=rule_style),
        Text(number_text(episode.value), style=f"bold {style}".strip()),
        Text(number_text(episode.bound), style=style),
        Text(clock_text(episode.last_s - episode.began_s), style=style),
        Text(f"{episode.times:,}", style=style),
        Text(duration_text(episode.latency_ms), style=style),
    ]


def rule_color(rule: str) -> str:

    return COLORS[state_of_rule(rule)]


def letters_panel(model: DashboardModel, rows: int, width: int) -> Panel:
    table = plain_table(("reason", None), ("records", 8), is_titled=False)
    for reason, count in model.reasons.most_common(rows):
        table.add_row(Text(reason), Text(f"{count:,}", style="bold"))
    content: RenderableType = table if model.reasons else Text("none", style="bright_black")
    return framed(content, f"dead letters ({model.reasons.total():,})", width, lines=rows)


def spark_line(values: list[float]) -> str:
    top = max(values, default=0.0)
    return "".join(BARS[0 if not value else 1 + int(value / top * (len(BARS) - 2))] for value in values)
