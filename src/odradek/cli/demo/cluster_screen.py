"""Output of `odradek demo --brokers N`: a live picture on a terminal, otherwise lines or JSON objects.

The picture has the brokers, leaders, in-sync sets, acknowledgements, and what happened.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Self

from odradek.cli.demo.load import CELL_S, CELLS, GAP_S, Acknowledgements, PartitionAcks, ReadBack
from odradek.cli.framework.output import print_json, say
from odradek.conventions.figures import age_text, count_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from odradek.admin.cluster_state import ClusterState, PartitionState

LINE_EVERY_S = 1.0
RATE_FRAMES = 20
SHOWN_EVENTS = 6  # so that the picture fits 24 lines
COLOURS = (
    "cyan", "magenta", "yellow", "blue", "green", "bright_cyan", "bright_magenta", "bright_yellow", "bright_blue"
)  # fmt: skip


class BrokerView(NamedTuple):
    """`state` is what this command has done with the process: running, starting, killed."""

    node_id: int
    address: str
    state: str
    since_s: float


class Event(NamedTuple):
    time: str
    text: str
    style: str = ""


class ClusterFrame(NamedTuple):
    brokers: Sequence[BrokerView]
    state: ClusterState | None
    acks: Acknowledgements
    events: Sequence[Event]
    topic: str
    now_s: float

    def partitions(self) -> list[PartitionState]:
        return [] if self.state is None else self.state.of_topics([self.topic])


class ClusterScreen:
    """A line every second, and one for each event."""

    def __init__(self) -> None:
        self._shown_at = time.monotonic()
        self._shown_total = 0
        self._shown_events = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        pass

    def report(self, text: str) -> None:
        say(text)

    def report_ready(self, address: str, seconds: float) -> None:
        say(f"brokers on {address}, started in {seconds:.1f} s; Ctrl-C stops")

    def show(self, frame: ClusterFrame) -> None:
        for event in frame.events[self._shown_events :]:
            self.show_event(event)
        self._shown_events = len(frame.events)
        if frame.now_s - self._shown_at >= LINE_EVERY_S:
            rate = (frame.acks.total - self._shown_total) / (frame.now_s - self._shown_at)
            self._shown_at, self._shown_total = frame.now_s, frame.acks.total
            self.show_line(frame, rate)

    def show_event(self, event: Event) -> None:
        say(f"{event.time}  {event.text}")

    def show_line(self, frame: ClusterFrame, rate: float) -> None:
        leaders = " ".join(str(each.leader) if each.leader >= 0 else "none" for each in frame.partitions())
        in_sync = " ".join(",".join(map(str, sorted(each.in_sync))) for each in frame.partitions())
        say(f"{frame.acks.total:>8,} acknowledged  {rate:>6,.0f}/s  leaders {leaders}  in sync {in_sync}")

    def print_summary(self, acks: Acknowledgements, result: ReadBack) -> None:
        gap = f"{acks.longest_s * 1000:,.0f} ms"
        say(f"{count_text(acks.total, 'record')} acknowledged, {result.read:,} read back; longest gap {gap}")
        say(f"{result.lost:,} lost, {result.repeated:,} repeated, {result.reordered:,} out of order")


class JsonClusterScreen(ClusterScreen):
    def report(self, text: str) -> None:
        pass

    def report_ready(self, address: str, seconds: float) -> None:
        print_json({"kind": "ready", "bootstrap_servers": address, "seconds": round(seconds, 3)})

    def show_event(self, event: Event) -> None:
        print_json({"kind": "event", "text": event.text})

    def show_line(self, frame: ClusterFrame, rate: float) -> None:
        partitions = [
            {"partition": each.index, "leader": each.leader, "in_sync": sorted(each.in_sync)}
            for each in frame.partitions()
        ]
        facts = {"acknowledged": frame.acks.total, "records_per_second": round(rate, 1), "partitions": partitions}
        print_json({"kind": "progress", **facts})

    def print_summary(self, acks: Acknowledgements, result: ReadBack) -> None:
        facts = {"acknowledged": acks.total, "refused": acks.failed, **result._asdict()}
        print_json({"kind": "summary", **facts, "longest_gap_ms": round(acks.longest_s * 1000)})


class LiveClusterScreen(ClusterScreen):
    def __enter__(self) -> Self:
        from rich.live import Live

        self._live = Live(auto_refresh=False, vertical_overflow="crop")
        self._totals: deque[tuple[float, int]] = deque(maxlen=RATE_FRAMES)
        self._live.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._live.stop()

    def report_ready(self, address: str, seconds: float) -> None:
        pass  # the picture has the addresses

    def show(self, frame: ClusterFrame) -> None:
        self._totals.append((frame.now_s, frame.acks.total))
        then, total = self._totals[0]
        rate = (frame.acks.total - total) / (frame.now_s - then) if frame.now_s > then else 0.0
        self._live.update(draw(frame, rate), refresh=True)


def chosen_cluster_screen(*, as_json: bool) -> ClusterScreen:
    if as_json:
        return JsonClusterScreen()
    return LiveClusterScreen() if sys.stdout.isatty() else ClusterScreen()


def draw(frame: ClusterFrame, rate: float) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    acks = frame.acks
    partitions = {each.index: each for each in frame.partitions()}
    replicas = max((len(each.replicas) for each in partitions.values()), default=0)
    head = Text.assemble(
        ("Odradek", "bold cyan"), f"  {len(frame.brokers)} brokers, ZooKeeper; topic {frame.topic}: ",
        f"{len(acks.partitions)} partitions × {replicas} replicas, acks=all", no_wrap=True, overflow="ellipsis",
    )  # fmt: skip
    total = Text.assemble(
        ("acknowledged ", "dim"), (f"{acks.total:,}", "bold"), ("   rate ", "dim"), (f"{rate:,.0f}/s", "bold"),
        ("   worst gap ", "dim"), (gap_text(acks.longest_s), "bold"),
        ("   refused ", "dim"), (f"{acks.failed:,}", "bold red" if acks.failed else "bold"),
    )  # fmt: skip
    event_lines = [
        Text.assemble((f"{each.time}  ", "dim"), (each.text, each.style), no_wrap=True, overflow="ellipsis")
        for each in frame.events[-SHOWN_EVENTS:]
    ]
    keys = ", ".join(str(broker.node_id) for broker in frame.brokers)
    return Group(
        head, Text(), *_broker_lines(frame, partitions), Text(), *_partition_lines(frame, partitions), Text(), total,
        Text(), *event_lines, *[Text()] * (SHOWN_EVENTS - len(event_lines)), Text(),
        Text(f"Keys {keys}: kill a broker with SIGKILL, or start it again. q or Ctrl-C: quit.", "dim"),
    )  # fmt: skip


def _broker_lines(frame: ClusterFrame, partitions: Mapping[int, PartitionState]) -> list[Text]:
    from rich.text import Text

    state = frame.state
    width = max(len(broker.address) for broker in frame.brokers)
    titles = f"broker  {'address'.ljust(width)}  {'process'.ljust(16)}  {'cluster'.ljust(10)}  {'leads'.ljust(12)}"
    lines = [Text(titles, "dim", no_wrap=True)]
    for broker in frame.brokers:
        known = None if state is None else state.brokers.get(broker.node_id)
        is_controller = state is not None and state.cluster.controller_id == broker.node_id
        leads = [str(each.index) for each in partitions.values() if each.leader == broker.node_id]
        is_up = broker.state == "running"
        process = broker.state if is_up else f"{broker.state} {age_text(int((frame.now_s - broker.since_s) * 1000))}"
        seen = "?" if known is None else "fenced" if known.is_fenced else "controller" if is_controller else "active"
        style = "green" if is_up else "yellow" if broker.state == "starting" else "red"
        lines.append(
            Text.assemble(
                (f"{broker.node_id:>6}", f"bold {colour(broker.node_id)}"), f"  {broker.address.ljust(width)}  ",
                (process.ljust(16), style), "  ", (seen.ljust(10), "red" if seen == "fenced" else ""), "  ",
                " ".join(leads) or "-", no_wrap=True, overflow="ellipsis",
            )
        )  # fmt: skip
    return lines


def _partition_lines(frame: ClusterFrame, partitions: Mapping[int, PartitionState]) -> list[Text]:
    from rich.text import Text

    strip = f"acknowledgements, last {CELLS * CELL_S:g} s".ljust(CELLS)
    lines = [Text(f"partition  leader  in sync  {strip}  worst gap", "dim", no_wrap=True, overflow="ellipsis")]
    for each in frame.acks.partitions:
        partition = partitions.get(each.index)
        line = Text(f"{each.index:>9}  ", no_wrap=True, overflow="ellipsis")
        leader = -1 if partition is None else partition.leader
        line.append(f"{leader if leader >= 0 else 'none':>6}", f"bold {colour(leader)}" if leader >= 0 else "bold red")
        line.append("  ")
        for replica in () if partition is None else sorted(partition.replicas):
            is_in_sync = partition is not None and replica in partition.in_sync
            line.append(f"{replica} " if is_in_sync else "· ", colour(replica) if is_in_sync else "red")
        line.pad_right(max(28 - len(line), 0))
        line.append_text(_strip(each, leader, frame.now_s))
        line.append(f"  {gap_text(each.longest_s):>9}")
        lines.append(line)
    return lines


def _strip(acks: PartitionAcks, leader: int, now_s: float) -> Text:
    """A block for each tenth of a second with acknowledgements, a dot for one without."""
    from rich.text import Text

    text = Text()
    for count in acks.strip(now_s):
        text.append(" " if count is None else "▆" if count else "·", "green" if count else "red")
    waiting_s = now_s - acks.last_s
    if acks.acknowledged and waiting_s >= GAP_S and leader >= 0:
        label = f" {waiting_s * 1000:,.0f} ms "
        text = text[: max(len(text) - len(label), 0)]
        text.append(label, "black on yellow")
    return text


def colour(node_id: int) -> str:
    return COLOURS[(node_id - 1) % len(COLOURS)]


def gap_text(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms" if seconds else "-"
