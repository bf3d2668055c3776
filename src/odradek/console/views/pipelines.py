"""What the pages of pipelines show: a row of the list; tiles, graph, flows and expectations of one; dead letters. Pure.

The graph is shapes of an SVG with live figures at its nodes, which the template draws.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from odradek.console.views.figures import DASH, age, compact, moment, number, rate, size, sparkline
from odradek.console.views.overview import Chart, Tile
from odradek.conventions.figures import count_text
from odradek.pipelines.operating.status import FlowStatus, PipelineStatus, State

if TYPE_CHECKING:
    from odradek.admin.letters import FoundLetter
    from odradek.console.cluster.snapshot import TopicSummary
    from odradek.console.models import KnownPipeline
    from odradek.console.records.record import Record
    from odradek.pipelines.operating.status_record import GraphNode

HEIGHT, GAP, COLUMN_GAP, MARGIN = 64.0, 16.0, 56.0, 8.0
NARROWEST, WIDEST = 122.0, 216.0
TIP = 6.0  # of an arrow, beyond the end of its line
MOST_EDGES = 3_000
NAME_WIDTH, DETAIL_WIDTH = 7.6, 6.2  # of a character


class Box(NamedTuple):
    x: float
    y: float
    width: float
    kind: str
    name: str
    detail: str
    figure: str
    tone: str
    title: str
    href: str


class Drawing(NamedTuple):
    width: float
    height: float
    boxes: tuple[Box, ...]
    edges: tuple[tuple[str, str], ...]  # paths of lines and of their tips


def draw(known: KnownPipeline, topics: Mapping[str, TopicSummary]) -> Drawing | None:
    """Boxes in columns, each right of those that it reads, and as high as their mean if there is room. None without
    nodes, and for a graph with too many edges for a page."""
    nodes = known.published.nodes
    if not nodes or sum(len(node.inputs) for node in nodes) > MOST_EDGES:
        return None
    levels, boxes = levels_of(nodes), dict[str, Box]()
    right, ends = 0.0, list[float]()  # the lower ends of the columns
    for level in range(max(levels.values()) + 1):
        column = [(node, *figure_of(node, known, topics)) for node in nodes if levels[node.id] == level]
        left = right + (COLUMN_GAP if boxes else MARGIN)
        width = max(width_of(node, figure) for node, figure, _ in column)
        before = {node.id: [boxes[each].y for each in node.inputs] for node, *_ in column}
        heights = {name: sum(found) / len(found) if found else math.inf for name, found in before.items()}
        below = MARGIN
        for node, figure, tone in sorted(column, key=lambda each: heights[each[0].id]):
            top = max(below, heights[node.id]) if before[node.id] else below
            name, detail = shortened(node.name, width, NAME_WIDTH), shortened(node.detail, width, DETAIL_WIDTH)
            title = f"{node.kind} {node.name}: {node.detail}"
            href = node.topics[0] if len(node.topics) == 1 and node.topics[0] in topics else ""
            boxes[node.id] = Box(left, top, width, node.kind, name, detail, figure, tone, title, href)
            below = top + HEIGHT + GAP
        right = left + width
        ends.append(below - GAP)
    edges = tuple(
        edge(boxes[each], boxes[node.id], max(ends[levels[each] + 1 : levels[node.id]], default=None))
        for node in nodes
        for each in node.inputs
    )
    return Drawing(right + MARGIN, max(ends) + MARGIN, tuple(boxes.values()), edges)


def levels_of(nodes: Sequence[GraphNode]) -> dict[str, int]:
    """The column of each node: that of a source is the one before its first reader."""
    levels: dict[str, int] = {}
    for node in nodes:
        levels[node.id] = max((levels[each] + 1 for each in node.inputs), default=0)
    first = dict[str, int]()
    for node in nodes:
        first |= {each: min(first.get(each, levels[node.id]), levels[node.id]) for each in node.inputs}
    return {node.id: levels[node.id] if node.inputs else first.get(node.id, 1) - 1 for node in nodes}


def edge(start: Box, end: Box, below: float | None) -> tuple[str, str]:
    """The paths of the line from one box to another, and of its tip. A line passes below the columns between them."""
    last = (end.x - TIP, end.y + HEIGHT / 2)
    points = [(start.x + start.width, start.y + HEIGHT / 2), last]
    if below is not None:
        points[1:1] = [(points[0][0] + COLUMN_GAP, below + MARGIN / 2), (last[0] - COLUMN_GAP, below + MARGIN / 2)]
    line = f"M {points[0][0]:.1f} {points[0][1]:.1f}"
    for (x, y), (to_x, to_y) in itertools.pairwise(points):
        bend = (to_x - x) / 2
        line += f" C {x + bend:.1f} {y:.1f} {to_x - bend:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
    return line, f"M {end.x:.1f} {last[1]:.1f} l -8 -4.5 v 9 z"


def shortened(text: str, width: float, character: float) -> str:
    """The text, cut to the width of a box; `character` is the average width of one."""
    most = max(int((width - 26) / character), 3)
    return text if len(text) <= most else text[: most - 1] + "…"


def figure_of(node: GraphNode, known: KnownPipeline, topics: Mapping[str, TopicSummary]) -> tuple[str, str]:
    """The text below the name, and its tone."""
    if node.kind == "source":
        found = [topics[name].records_per_s for name in node.topics if name in topics]
        return (f"{rate(sum(found))} records/s", "") if found else ("", "")
    if node.kind in {"sink", "view"}:
        rates = known.written_per_s
        return (f"{rate(rates[node.name])} rows/s", "") if node.name in rates else ("", "")
    failed = sum(each.rows for each in known.published.status.expectations if each.step == node.name)
    checked = max((each.checked for each in known.published.status.expectations if each.step == node.name), default=0)
    if failed:
        return f"{compact(failed)} of {compact(checked)} failed" if checked else f"{compact(failed)} failed", "warn"
    return (f"{compact(checked)} row{'' if checked == 1 else 's'} passed", "good") if checked else ("", "")


def width_of(node: GraphNode, figure: str) -> float:
    wanted = max(len(node.name) * NAME_WIDTH, len(node.detail) * DETAIL_WIDTH, len(figure) * DETAIL_WIDTH) + 28
    return min(max(wanted, NARROWEST), WIDEST)


SPARK_POINTS = 60
RECENT_S = 600.0  # after a failure
TONE_ORDER = ("bad", "warn")
HIDDEN_TEXT = "not shown with --mask, because it may quote a record"
TONES = {"running": "good", "starting": "warn", "waiting": "warn", "stopping": "warn", "failed": "bad", "died": "bad"}
CHARTS = (
    Chart("processed", "Processed", "records per second", "count"),
    Chart("batch_ms", "Batch time", "of the slowest flow", "ms"),
    Chart("lag", "Lag", "records, of the slowest flow", "count"),
    Chart("state_bytes", "State", "in memory, of all flows", "bytes"),
)
LONGEST_VALUE = 160
LONGEST_REASON = 300


class PipelineRow(NamedTuple):
    key: str
    host: str
    status: PipelineStatus
    state: str
    tone: str
    batch: str
    lag: str
    watermark: str
    state_size: str
    line: str
    note: str
    reason: str  # of the last failure, while it matters


class PipelineView(NamedTuple):
    row: PipelineRow
    tiles: tuple[Tile, ...]
    drawing: Drawing | None
    flows: tuple[tuple[FlowStatus, str], ...]  # with how far their watermarks are behind the clock
    dead_letters: TopicSummary | None
    facts: tuple[str, ...]
    last_error: str
    last_error_age: str


def has_progressed(status: PipelineStatus) -> bool:
    """Whether a batch was begun since the last failure and is finished, or records are being processed."""
    batches = [_time_of(flow.batch_at) for flow in status.flows if flow.batches]
    return max(batches, default=-math.inf) > (status.last_error_s or -math.inf) or status.processed_per_s > 0


def is_processing(known: KnownPipeline, now_s: float) -> bool:
    """Whether a running pipeline finishes batches, or has nothing to read."""
    status = known.published.status
    is_running = status.state is State.RUNNING and not known.published.is_stale(now_s)
    return is_running and (has_progressed(status) or status.lag == 0)


def state_of(known: KnownPipeline, now_s: float) -> tuple[str, str]:
    """The state with its tone; a pipeline that publishes nothing is not heard from. A pipeline that has failed is not
    shown as good before it has finished a batch, and for some minutes after."""
    status = known.published.status
    if known.published.is_stale(now_s):
        since = age((now_s - known.published.published_s) * 1000)
        return f"not heard from for {since}", "bad"
    if status.state is State.WAITING:
        return f"failed, restarts in {age(max(0.0, (status.next_try_s or now_s) - now_s) * 1000)}", "bad"
    if status.state is State.STARTING and status.restarts:
        return "restarting", "bad"
    if status.state is State.RUNNING and not is_processing(known, now_s):
        return ("restarted, no batch finished", "bad") if status.restarts else ("first batch running", "warn")
    if status.state is State.RUNNING and status.last_error_s is not None and now_s - status.last_error_s < RECENT_S:
        return "running, restarted", "warn"
    return str(status.state), TONES.get(status.state, "")


def _time_of(moment: str | None) -> float:
    try:
        return -math.inf if moment is None else datetime.fromisoformat(moment).timestamp()
    except (ValueError, OverflowError):  # no time, or one that the clock does not reach
        return -math.inf


def behind(watermark: str | None, now_s: float) -> str:
    """How far a watermark is behind the clock."""
    time_s = _time_of(watermark)
    return DASH if time_s == -math.inf else age(max(0.0, now_s - time_s) * 1000)


def pipeline_row(known: KnownPipeline, now_s: float, *, is_masked: bool = False) -> PipelineRow:
    status = known.published.status
    state, tone = state_of(known, now_s)
    recent = known.samples.since(known.samples.count - SPARK_POINTS)
    return PipelineRow(
        known.published.key,
        known.published.host,
        status,
        state,
        tone,
        age(status.batch_ms) if status.batch_ms else DASH,
        compact(status.lag),
        behind(min((flow.watermark for flow in status.flows if flow.watermark), default=None), now_s),
        size(status.state_bytes) if status.state_bytes else DASH,
        sparkline([sample.values.get("processed") for sample in recent]),
        HIDDEN_TEXT if status.note and is_masked else status.note,
        _error_of(status, is_masked=is_masked) if tone in TONE_ORDER else "",
    )


def pipeline_rows(pipelines: Iterable[KnownPipeline], now_s: float, *, is_masked: bool = False) -> list[PipelineRow]:
    """Those that fail come first."""
    rows = [pipeline_row(known, now_s, is_masked=is_masked) for known in pipelines]
    rows.sort(key=lambda row: TONE_ORDER.index(row.tone) if row.tone in TONE_ORDER else len(TONE_ORDER))
    return rows


def readers_of(pipelines: Iterable[KnownPipeline], topic: str) -> list[KnownPipeline]:
    return [
        known
        for known in pipelines
        if any(node.kind == "source" and topic in node.topics for node in known.published.nodes)
    ]


def _error_of(status: PipelineStatus, *, is_masked: bool) -> str:
    return HIDDEN_TEXT if status.last_error and is_masked else status.last_error or ""


def pipeline_view(
    known: KnownPipeline, topics: Mapping[str, TopicSummary], now_s: float, *, is_masked: bool = False
) -> PipelineView:
    """With masks, the error and the note are not shown: texts of exceptions and lines of output may quote a value."""
    status = known.published.status
    row = pipeline_row(known, now_s, is_masked=is_masked)
    dead = topics.get(known.published.dead_letters or "")
    running = status.running_since_s
    counted = "" if status.state_rows is None else f"{count_text(status.state_rows, 'row')} "
    up_for = age((now_s - running) * 1000) if running is not None and status.state == "running" else DASH
    checks = ("failed checks", "warn") if status.violations else ("no failed checks", "good")
    tiles = (
        Tile("Processed", rate(status.processed_per_s), f"records per second, {rate(status.input_per_s)} arrive"),
        Tile("Batch time", row.batch, "of the slowest flow"),
        Tile("Lag", row.lag, "records, of the slowest flow"),
        Tile("Watermark", row.watermark, f"behind the clock, {count_text(status.late_rows, 'late row')}"),
        Tile("State", row.state_size, f"{counted}in memory"),
        Tile("Expectations", number(status.violations), *checks),
        Tile("Dead letters", number(None if dead is None else dead.records), "in their topic"),
        Tile("Running for", up_for, count_text(status.restarts, "restart"), row.tone if status.restarts else ""),
    )
    flows = tuple((flow, behind(flow.watermark, now_s)) for flow in status.flows)
    error_age = "" if status.last_error_s is None else f"{age(max(0.0, now_s - status.last_error_s) * 1000)} ago"
    error = _error_of(status, is_masked=is_masked)
    return PipelineView(row, tiles, draw(known, topics), flows, dead, known.published.facts, error, error_age)


class ListedLetter(NamedTuple):
    found: FoundLetter
    is_redriven: bool


class LetterRow(NamedTuple):
    position: str
    partition: int
    offset: int
    time: str
    step: str
    reason: str
    origin: str
    value: str
    is_redriven: bool
    can_be_redriven: bool


def letter_row(listed: ListedLetter, shown: Record, *, is_masked: bool) -> LetterRow:
    """Details of a reason are an excerpt of the value: with masks, only its kind is shown."""
    found = listed.found
    letter = found.letter
    partition, offset = found.position
    value = (shown.value or b"")[: LONGEST_VALUE * 4].decode(errors="replace")[:LONGEST_VALUE]
    reason = (letter.kind if is_masked else letter.reason)[:LONGEST_REASON]
    origin = f"{letter.source_topic}-{letter.source.replace(':', ' at ')}" if letter.source_topic else ""
    place = f"{partition}:{offset}", partition, offset, moment(found.timestamp_ms)
    shown_value = "null" if found.value is None else value
    return LetterRow(*place, letter.step, reason, origin, shown_value, listed.is_redriven, letter.can_be_redriven)


def choices(listed: Sequence[ListedLetter]) -> dict[str, list[tuple[str, int]]]:
    """Pipelines, steps and kinds of reasons, the most frequent first."""
    fields = {"pipeline": "pipeline", "step": "step", "reason": "kind"}.items()
    return {name: Counter(getattr(each.found.letter, key) for each in listed).most_common(50) for name, key in fields}
