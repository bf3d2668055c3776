"""Draws the panels of a live view, each in a given width and number of lines. Imports rich."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group
from rich.panel import Panel as RichPanel
from rich.table import Table
from rich.text import Text

from odradek.examples.live_view.definition import Chart, Counts, Episodes, Figures, Rows, Topics
from odradek.examples.live_view.drawing_figures import figure_rows
from odradek.examples.live_view.layout import Size
from odradek.examples.live_view.records import number_of, text_of
from odradek.examples.live_view.tallies import CountTable, EpisodeList
from odradek.examples.live_view.text import duration_text, number_text
from odradek.pipelines.operating.figures import clock_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from odradek.examples.live_view.definition import Panel
    from odradek.examples.live_view.model import LiveViewModel

FAINT = "bright_black"
FRAME_LINES = 2  # lines of a panel in addition to its content
BARS = " ▁▂▃▄▅▆▇█"
LEAST_EPISODES = 4
LEAST_SPARKS = 11
MOST_SPARKS = 60


def size_of(model: LiveViewModel, panel: Panel) -> Size:
    match panel.content:
        case Topics() as topics:
            lines = len(topics.topics) + 1 + FRAME_LINES
            return Size(lines, lines)
        case Figures() as figures:
            lines = len(figure_rows(model, figures, 0.0, 40)) + FRAME_LINES
            return Size(lines, lines)
        case Episodes():
            table = model.tables[panel.title]
            rows = len(table) if isinstance(table, EpisodeList) else 0
            return Size(LEAST_EPISODES + 1 + FRAME_LINES, rows + 1 + FRAME_LINES)
        case Counts():
            return Size(3 + FRAME_LINES, max(1, len(model.tables[panel.title].counts)) + FRAME_LINES)
        case Rows():
            return Size(3 + FRAME_LINES, len(model.rows[panel.title] or ()) + 1 + FRAME_LINES)
        case Chart():
            return Size(4 + FRAME_LINES, 6 + FRAME_LINES, is_greedy=True)


def draw_panel(model: LiveViewModel, now_s: float, panel: Panel, width: int, lines: int) -> RenderableType:
    inside, inner_width = lines - FRAME_LINES, width - 4
    title = panel.title
    content: RenderableType
    match panel.content:
        case Topics() as topics:
            content = topics_table(model, topics, now_s, inner_width)
        case Figures() as figures:
            content = Group(*figure_rows(model, figures, now_s, inner_width))
        case Episodes() as episodes:
            table = model.tables[panel.title]
            assert isinstance(table, EpisodeList)
            title = f"{title} ({table.counts.total():,})"
            content = episodes_table(model, episodes, table, now_s, inside - 1) if len(table) else nothing("none")
        case Counts():
            counts = model.tables[panel.title]
            assert isinstance(counts, CountTable)
            title = f"{title} ({counts.counts.total():,})"
            content = counts_table(counts, inside, inner_width) if counts.counts else nothing("none")
        case Rows() as rows:
            found = model.rows[panel.title]
            content = rows_table(rows, found[: inside - 1]) if found else nothing("no rows so far")
        case Chart() as chart:
            rates = model.topics.rate_history(chart.topic, now_s, inner_width)
            content = Group(*chart_lines(rates, inside))
    return framed(content, title, width, lines)


def nothing(text: str) -> Text:
    return Text(text, style=FAINT)


def framed(content: RenderableType, title: str, width: int, lines: int) -> RichPanel:
    return RichPanel(
        content,
        title=Text(title, style="bold"),
        title_align="left",
        width=width,
        height=lines,
        border_style=FAINT,
        box=box.ROUNDED,
        padding=(0, 1),
    )


def plain_table(*columns: tuple[str, int | None, bool], is_titled: bool = True) -> Table:
    """A table of titles, widths and whether they are numbers. A column without a width gets the rest."""
    table = Table(
        box=None, show_header=is_titled, header_style=FAINT, padding=(0, 2, 0, 0), pad_edge=False, expand=True
    )
    for title, width, is_number in columns:
        table.add_column(
            title,
            ratio=1 if width is None else None,
            width=width,
            justify="right" if is_number else "left",
            no_wrap=True,
            overflow="ellipsis",
        )
    return table


def topics_table(model: LiveViewModel, topics: Topics, now_s: float, width: int) -> Table:
    name_width = max(len(topic) for topic in topics.topics) + 2
    sparks = min(MOST_SPARKS, width - name_width - 10 - 7 - 6)
    columns: list[tuple[str, int | None, bool]] = [("topic", None, False), ("records", 10, True), ("per s", 7, True)]
    table = plain_table(*columns, *([("last minute", sparks, False)] if sparks >= LEAST_SPARKS else []))
    for topic in topics.topics:
        is_input = topic == model.input
        cells = [
            Text.assemble(("→ " if is_input else "  ", "cyan"), (topic, "bold" if is_input else "")),
            Text(f"{model.topics.total(topic):,}"),
            Text(f"{model.topics.rate(topic, now_s):,.0f}", style="bold"),
        ]
        if sparks >= LEAST_SPARKS:
            cells.append(Text(spark_line(model.topics.rate_history(topic, now_s, sparks)), style="cyan"))
        table.add_row(*cells)
    return table


def episodes_table(model: LiveViewModel, episodes: Episodes, found: EpisodeList, now_s: float, rows: int) -> Table:
    latest = found.latest(rows)
    cells = [[value_text(episode.columns.get(column)) for _title, column in episodes.columns] for episode in latest]
    numeric = [are_numbers([episode.columns.get(column) for episode in latest]) for _title, column in episodes.columns]
    columns = declared_columns(episodes.columns, cells, numeric)
    columns += [("for", 7, True), ("times", 6, True)]
    columns += [("latency", 7, True)] if episodes.since is not None else []
    table = plain_table(*columns)
    for episode, texts in zip(latest, cells, strict=True):
        is_current = now_s - episode.last_s <= episodes.ends_after_s
        style = "" if is_current else FAINT
        color = row_color(model, episodes, episode.columns) if is_current else FAINT
        row = [Text(text, style=style if is_number else color) for text, is_number in zip(texts, numeric, strict=True)]
        row += [
            Text(clock_text(episode.last_s - episode.began_s), style=style),
            Text(f"{episode.times:,}", style=style),
        ]
        row += [Text(duration_text(episode.latency_ms), style=style)] if episodes.since is not None else []
        table.add_row(*row)
    return table


def row_color(model: LiveViewModel, episodes: Episodes, columns: dict[str, Any]) -> str:
    """The color of the state that the record sets."""
    if model.states is None or model.states.declared.topic != episodes.topic:
        return ""
    value = model.states.declared.value_of(text_of(columns.get(model.states.declared.column)))
    return "" if value is None else value.color


def counts_table(counts: CountTable, rows: int, width: int) -> Table:
    """Names with their counts, and bars of their shares if there is room."""
    shown = counts.counts.most_common(rows)
    name_width = max(len(name) for name, _count in shown)
    bar_width = min(30, width - name_width - 8 - 4)
    bars: list[tuple[str, int | None, bool]] = [("", bar_width, False)] if bar_width >= LEAST_SPARKS else []
    table = plain_table(("", None, False), *bars, ("", 8, True), is_titled=False)
    most = shown[0][1]
    for name, count in shown:
        bar = [Text("█" * max(1, count * bar_width // most), style="cyan")] if bars else []
        table.add_row(Text(name), *bar, Text(f"{count:,}", style="bold"))
    return table


def rows_table(declared: Rows, found: Sequence[Sequence[Any]]) -> Table:
    cells = [[value_text(value) for value in row] for row in found]
    numeric = [are_numbers([row[index] for row in found]) for index in range(len(declared.columns))]
    table = plain_table(*declared_columns(declared.columns, cells, numeric))
    for row in cells:
        table.add_row(*[Text(text) for text in row])
    return table


def declared_columns(
    columns: Sequence[tuple[str, str]], cells: Sequence[Sequence[str]], numeric: Sequence[bool]
) -> list[tuple[str, int | None, bool]]:
    """Widths by content; the last text gets the rest. Without a text, rich widens all columns."""
    texts = [index for index, is_number in enumerate(numeric) if not is_number]
    widest = texts[-1] if texts else None
    widths = [max([len(title), *(len(row[index]) for row in cells)]) for index, (title, _column) in enumerate(columns)]
    return [
        (title, None if index == widest else widths[index], numeric[index])
        for index, (title, _column) in enumerate(columns)
    ]


def are_numbers(values: Sequence[object]) -> bool:
    return all(value is None or isinstance(value, int | float) for value in values)


def value_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    number = number_of(value)
    if number is not None:
        return number_text(number)
    return "–" if value is None else text_of(value)


def spark_line(values: Sequence[float]) -> str:
    top = max(values, default=0.0)
    return "".join(BARS[0 if not value else 1 + int(value / top * (len(BARS) - 2))] for value in values)


def chart_lines(values: Sequence[float], lines: int) -> list[Text]:
    """Bars of several lines, with the highest value at the top left."""
    top = max(values, default=0.0)
    drawn = []
    for line in range(lines):
        below = lines - 1 - line  # full lines below this one
        eighths = [0 if not top else min(8, max(0, round(value / top * lines * 8) - 8 * below)) for value in values]
        eighths = [
            1 if below == 0 and value and not eighth else eighth for value, eighth in zip(values, eighths, strict=True)
        ]
        drawn.append(Text("".join(BARS[eighth] for eighth in eighths), style="cyan", no_wrap=True))
    if drawn:
        label = f"{top:,.0f}/s "
        drawn[0] = Text.assemble((label, FAINT), drawn[0][len(label) :], no_wrap=True)
    return drawn
