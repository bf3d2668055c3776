"""`odradek demo --brokers N`: a cluster under load, whose brokers are killed and started again while one watches."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Self

from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster import Cluster
from odradek.admin.cluster_state import ClusterState, MinInSync, read_state
from odradek.cli.demo.cluster_screen import BrokerView, ClusterFrame, Event, chosen_cluster_screen
from odradek.cli.demo.load import Acknowledgements, Gap, Load, ReadBack, read_back
from odradek.cli.demo.local_brokers import local_cluster
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.conventions.failures import Failure
from odradek.local.running_broker import BrokerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.local.running_cluster import RunningCluster

TOPIC = "demo"
PARTITIONS = 3
FRAME_S = 0.1
METADATA_INTERVAL_S = 0.15
METADATA_TIMEOUT_S = 1.0
KEPT_EVENTS = 200


def run_cluster_demo(
    count: int, port: int, data_dir: str | None, rate: float, seconds: float | None, kill_every_s: float | None,
    *, as_json: bool,
) -> None:  # fmt: skip
    screen = chosen_cluster_screen(as_json=as_json)
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
        processes = self._processes.values()
        changed_s = max(began_s, *(since_s for _, since_s in processes))
        if now_s - changed_s < period_s / 2:
            return
        is_well = self._state is not None and self._state.is_healthy
        if is_well and all(process == "running" for process, _ in processes):
            self._kill_a_leader()
        else:
            self._revive_all()

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

    def _kill_a_leader(self) -> None:
        partitions = self._state.of_topics([TOPIC]) if self._state is not None else []
        running = [node_id for node_id, (process, _) in self._processes.items() if process == "running"]
        leaders = [each.leader for each in partitions if each.leader in running]
        if leaders or running:
            self._kill((leaders or running)[0])

    def _revive_all(self) -> None:
        for node_id, (process, _) in list(self._processes.items()):
            if process == "killed":
                self._revive(node_id)

    def _kill(self, node_id: int) -> None:
        role = self._role(node_id)
        self._processes[node_id] = "killed", time.monotonic()
        self._note(f"broker {node_id} killed{f' ({role})' if role else ''}", "red")
        self._act(self._local.brokers[node_id].kill)

    def _revive(self, node_id: int) -> None:
        self._processes[node_id] = "starting", time.monotonic()

        def start() -> None:
            began_s = time.monotonic()
            try:
                self._local.brokers[node_id].start()
            except BrokerError:
                self._processes[node_id] = "killed", time.monotonic()
                self._note(f"broker {node_id} did not start", "red")
                return
            now_s = time.monotonic()
            self._processes[node_id] = "running", now_s
            self._note(f"broker {node_id} is ready again, {now_s - began_s:.1f} s after its start", "green")

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
        self._note(f"partition {gap.partition}: acknowledged again after {gap.milliseconds:,} ms", "bold yellow")

    def _note(self, text: str, style: str = "") -> None:
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
                self._note(f"partition {each.index}: acknowledges nothing: {minimum}", "red")
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
