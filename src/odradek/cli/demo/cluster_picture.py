"""The picture of `odradek demo --brokers N`: brokers, leaders, in-sync sets, acknowledgements, and what happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.cli.demo.acknowledgements import CELL_S, CELLS, GAP_S
from odradek.conventions.figures import age_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from odradek.admin.cluster_state import ClusterState, PartitionState
    from odradek.cli.demo.acknowledgements import Acknowledgements, PartitionAcks

EVENTS = 6  # so that the picture fits 24 lines
COLOURS = (
    "cyan",
    "magenta",
    "yellow",
    "blue",
    "green",
    "bright_cyan",
    "bright_magenta",
    "bright_yellow",
    "bright_blue",
)


@dataclass(frozen=True, slots=True)
class BrokerView:
    """`state` is what this command has done with the process: running, starting, killed."""

    node_id: int
    address: str
    state: str
    since_s: float


@dataclass(frozen=True, slots=True)
class Happening:
    time: str
    text: str
    style: str = ""


def draw(
    brokers: Sequence[BrokerView],
    state: ClusterState | None,
    acks: Acknowledgements,
    happenings: Sequence[Happening],
    rate: float,
    topic: str,
    now_s: float,
) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    partitions = {each.index: each for each in state.of_topics([topic])} if state is not None else {}
    replicas = max((len(each.replicas) for each in partitions.values()), default=0)
    head = Text.assemble(
        ("Odradek", "bold cyan"), f"  {len(brokers)} brokers, ZooKeeper; topic {topic}: ",
        f"{len(acks.partitions)} partitions × {replicas} replicas, acks=all", no_wrap=True, overflow="ellipsis",
    )  # fmt: skip
    total = Text.assemble(
        ("acknowledged ", "dim"), (f"{acks.total:,}", "bold"), ("   rate ", "dim"), (f"{rate:,.0f}/s", "bold"),
        ("   worst gap ", "dim"), (gap_text(acks.longest_s), "bold"),
        ("   refused ", "dim"), (f"{acks.failed:,}", "bold red" if acks.failed else "bold"),
    )  # fmt: skip
    lines = [head, Text(), *_broker_lines(brokers, state, partitions, now_s), Text()]
    lines += [*_partition_lines(acks, partitions, now_s), Text(), total, Text(), *_event_lines(happenings)]
    keys = ", ".join(str(broker.node_id) for broker in brokers)
    lines += [Text(), Text(f"Keys {keys}: kill a broker with SIGKILL, or start it again. q or Ctrl-C: quit.", "dim")]
    return Group(*lines)


def _broker_lines(
    brokers: Sequence[BrokerView],
    state: ClusterState | None,
    partitions: Mapping[int, PartitionState],
    now_s: float,
) -> list[Text]:
    from rich.text import Text

    width = max(len(broker.address) for broker in brokers)
    titles = f"broker  {'address'.ljust(width)}  {'process'.ljust(16)}  {'cluster'.ljust(10)}  {'leads'.ljust(12)}"
    lines = [Text(titles, "dim", no_wrap=True)]
    for broker in brokers:
        known = None if state is None else state.brokers.get(broker.node_id)
        is_controller = state is not None and state.cluster.controller_id == broker.node_id
        leads = [str(each.index) for each in partitions.values() if each.leader == broker.node_id]
        is_up = broker.state == "running"
        process = broker.state if is_up else f"{broker.state} {age_text(int((now_s - broker.since_s) * 1000))}"
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


def _partition_lines(acks: Acknowledgements, partitions: Mapping[int, PartitionState], now_s: float) -> list[Text]:
    from rich.text import Text

    strip = f"acknowledgements, last {CELLS * CELL_S:g} s".ljust(CELLS)
    lines = [Text(f"partition  leader  in sync  {strip}  worst gap", "dim", no_wrap=True, overflow="ellipsis")]
    for each in acks.partitions:
        partition = partitions.get(each.index)
        line = Text(f"{each.index:>9}  ", no_wrap=True, overflow="ellipsis")
        leader = -1 if partition is None else partition.leader
        line.append(f"{leader if leader >= 0 else 'none':>6}", f"bold {colour(leader)}" if leader >= 0 else "bold red")
        line.append("  ")
        for replica in () if partition is None else sorted(partition.replicas):
            is_in_sync = partition is not None and replica in partition.in_sync
            line.append(f"{replica} " if is_in_sync else "· ", colour(replica) if is_in_sync else "red")
        line.pad_right(max(28 - len(line), 0))
        line.append_text(_strip(each, leader, now_s))
        line.append(f"  {gap_text(each.longest_s):>9}")
        lines.append(line)
    return lines


def _strip(acks: PartitionAcks, leader: int, now_s: float) -> Text:
    """A block for each tenth of a second with acknowledgements, a dot for one without."""
    from rich.text import Text

    text = Text()
    for count in acks.strip(now_s):
        text.append(" " if count is None else "▆" if count else "·", "green" if count else "red")
    waiting_s = acks.waiting_s(now_s)
    if acks.acknowledged and waiting_s >= GAP_S and leader >= 0:
        label = f" {waiting_s * 1000:,.0f} ms "
        text = text[: max(len(text) - len(label), 0)]
        text.append(label, "black on yellow")
    return text


def _event_lines(happenings: Sequence[Happening]) -> list[Text]:
    from rich.text import Text

    recent = list(happenings)[-EVENTS:]
    lines = [
        Text.assemble((f"{each.time}  ", "dim"), (each.text, each.style), no_wrap=True, overflow="ellipsis")
        for each in recent
    ]
    return [*lines, *[Text()] * (EVENTS - len(lines))]


def colour(node_id: int) -> str:
    return COLOURS[(node_id - 1) % len(COLOURS)]


def gap_text(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms" if seconds else "-"
