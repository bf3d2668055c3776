"""Output of `odradek demo --brokers N`: a live picture on a terminal, otherwise lines or JSON objects."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from odradek.cli.demo.cluster_picture import BrokerView, Happening, draw
from odradek.cli.framework.output import print_json, say
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster_state import ClusterState, PartitionState
    from odradek.cli.demo.acknowledgements import Acknowledgements, ReadBack

LINE_EVERY_S = 1.0
RATE_FRAMES = 20


class ClusterFrame(NamedTuple):
    brokers: Sequence[BrokerView]
    state: ClusterState | None
    acks: Acknowledgements
    happenings: Sequence[Happening]
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
        for happening in frame.happenings[self._shown_events :]:
            self.show_event(happening)
        self._shown_events = len(frame.happenings)
        if frame.now_s - self._shown_at >= LINE_EVERY_S:
            rate = (frame.acks.total - self._shown_total) / (frame.now_s - self._shown_at)
            self._shown_at, self._shown_total = frame.now_s, frame.acks.total
            self.show_line(frame, rate)

    def show_event(self, happening: Happening) -> None:
        say(f"{happening.time}  {happening.text}")

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

    def show_event(self, happening: Happening) -> None:
        print_json({"kind": "event", "text": happening.text})

    def show_line(self, frame: ClusterFrame, rate: float) -> None:
        partitions: list[dict[str, Any]] = [
            {"partition": each.index, "leader": each.leader, "in_sync": sorted(each.in_sync)}
            for each in frame.partitions()
        ]
        facts = {"acknowledged": frame.acks.total, "records_per_second": round(rate, 1), "partitions": partitions}
        print_json({"kind": "progress", **facts})

    def print_summary(self, acks: Acknowledgements, result: ReadBack) -> None:
        facts = {"acknowledged": acks.total, "refused": acks.failed, **{
            name: getattr(result, name) for name in ("read", "lost", "repeated", "reordered")
        }}  # fmt: skip
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
        picture = draw(frame.brokers, frame.state, frame.acks, frame.happenings, rate, frame.topic, frame.now_s)
        self._live.update(picture, refresh=True)


def chosen_cluster_screen(*, as_json: bool) -> ClusterScreen:
    if as_json:
        return JsonClusterScreen()
    return LiveClusterScreen() if sys.stdout.isatty() else ClusterScreen()
