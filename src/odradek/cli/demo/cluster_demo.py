"""`odradek demo --brokers N`: a cluster under load, whose brokers are killed and started again while one watches.

A live picture on a terminal, otherwise lines or JSON objects. The picture has the brokers, leaders, in-sync sets,
acknowledgements, and what happened.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import click

from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster import Cluster
from odradek.admin.cluster_state import ClusterState, MinInSync, PartitionState, read_state
from odradek.cli.demo.load import CELL_S, CELLS, GAP_S, Acknowledgements, Gap, Load, PartitionAcks, ReadBack, read_back
from odradek.cli.demo.local_brokers import TITLE, DemoScreen, figures_line, local_cluster
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.cli.framework.output import LiveLines, faint, live_lines, say
from odradek.conventions.failures import Failure
from odradek.conventions.figures import age_text, count_text
from odradek.local.running_broker import BrokerError

if TYPE_CHECKING:
    from odradek.local.running_cluster import RunningCluster

LINE_EVERY_S = 1.0
RATE_FRAMES = 20
SHOWN_EVENTS = 6  # so that the picture fits 24 lines
COLOURS = (
    "cyan", "magenta", "yellow", "blue", "green", "bright_cyan", "bright_magenta", "bright_yellow", "bright_blue"
)  # fmt: skip
TOPIC = "demo"
PARTITIONS = 3
FRAME_S = 0.1
METADATA_INTERVAL_S = 0.15
METADATA_TIMEOUT_S = 1.0
KEPT_EVENTS = 200


class BrokerView(NamedTuple):
    """`state` is what this command has done with the process: running, starting, killed."""

    node_id: int
    address: str
    state: str
    since_s: float


class Event(NamedTuple):
    """`style` are arguments of click.style."""

    time: str
    text: str
    style: Mapping[str, Any] = {}


class ClusterFrame(NamedTuple):
    brokers: Sequence[BrokerView]
    state: ClusterState | None
    acks: Acknowledgements
    events: Sequence[Event]
    topic: str
    now_s: float

    def partitions(self) -> list[PartitionState]:
        return [] if self.state is None else self.state.of_topics([self.topic])


class ClusterScreen(DemoScreen):
    """A line or an object every second, and one for each event; or a picture that is drawn in place with `live`."""

    def __init__(self, *, as_json: bool = False, live: LiveLines | None = None) -> None:
        super().__init__(as_json=as_json, live=live)
        self._totals = deque([(time.monotonic(), 0)], maxlen=RATE_FRAMES if live is not None else 1)
        self._shown_events = 0

    def report(self, text: str) -> None:
        if not self.as_json:
            say(text)

    def report_ready(self, address: str, seconds: float) -> None:
        if self.live is None:  # the picture has the addresses
            ready = {"kind": "ready", "bootstrap_servers": address, "seconds": round(seconds, 3)}
            self.print(ready, f"brokers on {address}, started in {seconds:.1f} s; Ctrl-C stops")

    def show(self, frame: ClusterFrame) -> None:
        then, total = self._totals[0]
        rate = (frame.acks.total - total) / (frame.now_s - then) if frame.now_s > then else 0.0
        if self.live is not None:
            self._totals.append((frame.now_s, frame.acks.total))
            self.live.draw(draw(frame, rate))
            return
        for event in frame.events[self._shown_events :]:
            self.print({"kind": "event", "text": event.text}, f"{event.time}  {event.text}")
        self._shown_events = len(frame.events)
        if frame.now_s - then >= LINE_EVERY_S:
            self._totals.append((frame.now_s, frame.acks.total))
            self.show_line(frame, rate)

    def show_line(self, frame: ClusterFrame, rate: float) -> None:
        leaders = " ".join(str(each.leader) if each.leader >= 0 else "none" for each in frame.partitions())
        in_sync = " ".join(",".join(map(str, sorted(each.in_sync))) for each in frame.partitions())
        partitions = [
            {"partition": each.index, "leader": each.leader, "in_sync": sorted(each.in_sync)}
            for each in frame.partitions()
        ]
        facts = {"acknowledged": frame.acks.total, "records_per_second": round(rate, 1), "partitions": partitions}
        text = f"{frame.acks.total:>8,} acknowledged  {rate:>6,.0f}/s  leaders {leaders}  in sync {in_sync}"
        self.print({"kind": "progress", **facts}, text)

    def print_summary(self, acks: Acknowledgements, result: ReadBack) -> None:
        facts = {"acknowledged": acks.total, "refused": acks.failed, **result._asdict()}
        gap_ms = round(acks.longest_s * 1000)
        text = f"{count_text(acks.total, 'record')} acknowledged, {result.read:,} read back; longest gap {gap_ms:,} ms"
        errors = f"{result.lost:,} lost, {result.repeated:,} repeated, {result.reordered:,} out of order"
        self.print({"kind": "summary", **facts, "longest_gap_ms": gap_ms}, f"{text}\n{errors}")


def draw(frame: ClusterFrame, rate: float) -> list[str]:
    acks = frame.acks
    partitions = {each.index: each for each in frame.partitions()}
    replicas = max((len(each.replicas) for each in partitions.values()), default=0)
    totals = {
        "acknowledged": f"{acks.total:,}", "rate": f"{rate:,.0f}/s", "worst gap": gap_text(acks.longest_s),
        "refused": click.style(f"{acks.failed:,}", fg="red" if acks.failed else None),
    }  # fmt: skip
    events = [f"{faint(each.time)}  {click.style(each.text, **each.style)}" for each in frame.events[-SHOWN_EVENTS:]]
    keys = ", ".join(str(broker.node_id) for broker in frame.brokers)
    what = f"{len(acks.partitions)} partitions × {replicas} replicas, acks=all"
    return [
        f"{TITLE}  {len(frame.brokers)} brokers, ZooKeeper; topic {frame.topic}: {what}",
        "",
        *_broker_lines(frame, partitions),
        "",
        *_partition_lines(frame, partitions),
        "",
        figures_line(totals),
        "",
        *events,
        *[""] * (SHOWN_EVENTS - len(events)),
        "",
        faint(f"Keys {keys}: kill a broker with SIGKILL, or start it again. q or Ctrl-C: quit."),
    ]


def _broker_lines(frame: ClusterFrame, partitions: Mapping[int, PartitionState]) -> list[str]:
    state = frame.state
    width = max(len(broker.address) for broker in frame.brokers)
    lines = [faint(f"broker  {'address'.ljust(width)}  {'process'.ljust(16)}  {'cluster'.ljust(10)}  leads")]
    for broker in frame.brokers:
        known = None if state is None else state.brokers.get(broker.node_id)
        is_controller = state is not None and state.cluster.controller_id == broker.node_id
        leads = [str(each.index) for each in partitions.values() if each.leader == broker.node_id]
        is_up = broker.state == "running"
        process = broker.state if is_up else f"{broker.state} {age_text(int((frame.now_s - broker.since_s) * 1000))}"
        seen = "?" if known is None else "fenced" if known.is_fenced else "controller" if is_controller else "active"
        cells = (
            click.style(f"{broker.node_id:>6}", fg=colour(broker.node_id), bold=True),
            broker.address.ljust(width),
            click.style(process.ljust(16), fg="green" if is_up else "yellow" if broker.state == "starting" else "red"),
            click.style(seen.ljust(10), fg="red" if seen == "fenced" else None),
            " ".join(leads) or "-",
        )
        lines.append("  ".join(cells))
    return lines


def _partition_lines(frame: ClusterFrame, partitions: Mapping[int, PartitionState]) -> list[str]:
    strip = f"acknowledgements, last {CELLS * CELL_S:g} s".ljust(CELLS)
    lines = [faint(f"partition  leader  in sync  {strip}  worst gap")]
    for each in frame.acks.partitions:
        partition = partitions.get(each.index)
        leader = -1 if partition is None else partition.leader
        replicas = [] if partition is None else sorted(partition.replicas)
        in_sync = () if partition is None else partition.in_sync
        marks = [
            click.style(f"{replica} ", fg=colour(replica)) if replica in in_sync else click.style("· ", fg="red")
            for replica in replicas
        ]
        name, fg = (str(leader), colour(leader)) if leader >= 0 else ("none", "red")
        cells = (
            f"{each.index:>9}",
            click.style(f"{name:>6}", fg=fg, bold=True),
            "".join(marks) + " " * max(9 - 2 * len(replicas), 0) + _strip(each, leader, frame.now_s),
            f"{gap_text(each.longest_s):>9}",
        )
        lines.append("  ".join(cells))
    return lines


def _strip(acks: PartitionAcks, leader: int, now_s: float) -> str:
    """A block for each tenth of a second with acknowledgements, a dot for one without."""
    waiting_s = now_s - acks.last_s
    is_waiting = acks.acknowledged and waiting_s >= GAP_S and leader >= 0
    label = f" {waiting_s * 1000:,.0f} ms " if is_waiting else ""
    cells = [
        " " if count is None else click.style("▆", fg="green") if count else click.style("·", fg="red")
        for count in acks.strip(now_s)[: CELLS - len(label)]
    ]
    return "".join(cells) + click.style(label, fg="black", bg="yellow")


def colour(node_id: int) -> str:
    return COLOURS[(node_id - 1) % len(COLOURS)]


def gap_text(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms" if seconds else "-"


def run_cluster_demo(
    count: int, port: int, data_dir: str | None, rate: float, seconds: float | None, kill_every_s: float | None,
    *, as_json: bool,
) -> None:  # fmt: skip
    screen = ClusterScreen(as_json=as_json, live=live_lines(as_json=as_json))
    screen.report(f"starting ZooKeeper and {count} brokers")
    began_at = time.monotonic()
    with Keys() as keys, local_cluster(count, port, data_dir) as local:
        screen.report_ready(local.bootstrap_servers, time.monotonic() - began_at)
        demo = ClusterDemo(local, rate)
        try:
            with screen:
                demo.run(screen.show, keys, seconds, kill_every_s)
            result = demo.finish()
        finally:
            demo.stop()
        screen.print_summary(demo.acks, result)


class ClusterDemo:
    """The load, what is known of the cluster, and the processes that were killed."""

    def __init__(self, local: RunningCluster, rate: float) -> None:
        self._local = local
        self._cluster = Cluster(local.bootstrap_servers, {})
        self._cluster.create_topic(TOPIC, PARTITIONS)
        now_s = time.monotonic()
        self.acks = Acknowledgements(PARTITIONS, now_s)
        self.events: deque[Event] = deque(maxlen=KEPT_EVENTS)
        self._processes = dict.fromkeys(local.brokers, ("running", now_s))
        self._state: ClusterState | None = None
        self._is_stopped = threading.Event()
        self._load = Load(self._cluster, TOPIC, self.acks, rate, self._report_gap)
        self._watcher = threading.Thread(target=self._watch, name="demo-watcher", daemon=True)
        self._actions: list[threading.Thread] = []

    def run(
        self, show: Callable[[ClusterFrame], None], keys: Keys, seconds: float | None, kill_every_s: float | None
    ) -> None:
        """Until the time is over, Ctrl-C or q."""
        with stop_on_interrupt(self._is_stopped):
            self._load.start()
            self._watcher.start()
            began_s = time.monotonic()
            while not self._is_stopped.is_set():
                self._take_keys(keys.pressed(FRAME_S))
                now_s = time.monotonic()
                show(self._frame(now_s))
                if seconds is not None and now_s - began_s >= seconds:
                    return
                if kill_every_s is not None:
                    self._kill_or_revive(kill_every_s, now_s, began_s)

    def _kill_or_revive(self, period_s: float, now_s: float, began_s: float) -> None:
        """Kill a leader half a period after everything was well again; start it again half a period later."""
        processes, state = self._processes.values(), self._state
        if now_s - max(began_s, *(since_s for _, since_s in processes)) < period_s / 2:
            return
        if state is None or not state.is_healthy or any(process != "running" for process, _ in processes):
            self._revive_all()
            return
        leaders = [each.leader for each in state.of_topics([TOPIC]) if each.leader in self._processes]
        self._kill((leaders or list(self._processes))[0])

    def _frame(self, now_s: float) -> ClusterFrame:
        brokers = [
            BrokerView(node_id, broker.bootstrap_servers, *self._processes[node_id])
            for node_id, broker in self._local.brokers.items()
        ]
        return ClusterFrame(brokers, self._state, self.acks, list(self.events), TOPIC, now_s)

    def finish(self) -> ReadBack:
        """Start what was killed, wait for the acknowledgements that are outstanding, and read everything back."""
        self._revive_all()
        for thread in self._actions:
            thread.join()
        self._load.finish()
        return read_back(self._cluster, TOPIC, self.acks)

    def stop(self) -> None:
        self._is_stopped.set()
        self._load.stop()
        for thread in self._actions:
            thread.join()

    def _take_keys(self, pressed: str) -> None:
        for key in pressed:
            if key == "q":
                self._is_stopped.set()
            elif key.isdecimal() and int(key) in self._processes:
                process, _ = self._processes[int(key)]
                if process == "running":
                    self._kill(int(key))
                elif process == "killed":
                    self._revive(int(key))

    def _revive_all(self) -> None:
        for node_id, (process, _) in list(self._processes.items()):
            if process == "killed":
                self._revive(node_id)

    def _kill(self, node_id: int) -> None:
        role = self._role(node_id)
        self._processes[node_id] = "killed", time.monotonic()
        self._note(f"broker {node_id} killed{f' ({role})' if role else ''}", fg="red")
        self._act(self._local.brokers[node_id].kill)

    def _revive(self, node_id: int) -> None:
        self._processes[node_id] = "starting", time.monotonic()

        def start() -> None:
            began_s = time.monotonic()
            try:
                self._local.brokers[node_id].start()
            except BrokerError:
                self._processes[node_id] = "killed", time.monotonic()
                self._note(f"broker {node_id} did not start", fg="red")
                return
            now_s = time.monotonic()
            self._processes[node_id] = "running", now_s
            self._note(f"broker {node_id} is ready again, {now_s - began_s:.1f} s after its start", fg="green")

        self._act(start)

    def _act(self, action: Callable[[], None]) -> None:
        thread = threading.Thread(target=action, daemon=True)
        self._actions.append(thread)
        thread.start()

    def _role(self, node_id: int) -> str:
        state = self._state
        if state is None:
            return ""
        leads = [str(each.index) for each in state.of_topics([TOPIC]) if each.leader == node_id]
        parts = [f"leader of partition{'s' if len(leads) > 1 else ''} {', '.join(leads)}"] if leads else []
        return ", ".join(parts + (["controller"] if state.cluster.controller_id == node_id else []))

    def _report_gap(self, gap: Gap) -> None:
        text = f"partition {gap.partition}: acknowledged again after {gap.milliseconds:,} ms"
        self._note(text, fg="yellow", bold=True)

    def _note(self, text: str, **style: Any) -> None:
        self.events.append(Event(time.strftime("%H:%M:%S"), text, style))

    def _watch(self) -> None:
        requests = BrokerRequests(self._cluster, METADATA_TIMEOUT_S)
        min_in_sync = MinInSync(requests)
        while not self._is_stopped.is_set():
            before = self._state
            try:
                self._state = read_state(requests, min_in_sync)
            except Failure:
                continue  # every broker may be killed
            finally:
                self._is_stopped.wait(METADATA_INTERVAL_S)
            self._report_changes(before, self._state)

    def _report_changes(self, before: ClusterState | None, after: ClusterState) -> None:
        if before is None:
            return
        partitions = {each.index: each for each in before.of_topics([TOPIC])}
        for each in after.of_topics([TOPIC]):
            was = partitions.get(each.index, each)
            if each.leader != was.leader:
                now = f"broker {each.leader}" if each.leader >= 0 else "no broker"
                rest = f", broker {was.leader} did" if was.leader >= 0 else ""
                self._note(f"partition {each.index}: {now} leads{rest}")
            if each.is_under_min_in_sync and not was.is_under_min_in_sync:
                minimum = f"{len(each.in_sync)} in sync, and min.insync.replicas is {each.min_in_sync}"
                self._note(f"partition {each.index}: acknowledges nothing: {minimum}", fg="red")
        if after.cluster.controller_id != before.cluster.controller_id:
            self._note(f"broker {after.cluster.controller_id} is the controller")


class Keys:
    """Single keys that were pressed on the terminal, without Enter; none if standard input is no terminal."""

    def __enter__(self) -> Self:
        self._saved: list[Any] | None = None
        if sys.stdin.isatty():
            import termios
            import tty

            self._saved = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._saved is not None:
            import termios

            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._saved)

    def pressed(self, timeout_s: float) -> str:
        """Keys within this time; waits for it only where there are no keys."""
        if self._saved is None:
            select.select([], [], [], timeout_s)
            return ""
        readable, _, _ = select.select([sys.stdin], [], [], timeout_s)
        return os.read(sys.stdin.fileno(), 64).decode(errors="ignore") if readable else ""
