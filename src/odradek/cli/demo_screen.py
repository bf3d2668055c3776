"""What the demo shows: a live table on a terminal, a line a second elsewhere, JSON lines for programs."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from odradek.cli.bench.results import percentiles
from odradek.cli.output import count_text, duration_text, print_json, say

if TYPE_CHECKING:
    from confluent_kafka import Message
    from rich.console import RenderableType
    from rich.live import Live

RECENT_RECORDS = 12
LATENCIES_KEPT = 20_000
LINE_EVERY_S = 1.0
FRAME_EVERY_S = 0.1
WARM_UP_S = 0.5  # the first records pay for connections; their latency says nothing


class Screen:
    """Counts what is consumed, and prints a line every second."""

    def __init__(self, address: str, topic: str, start_s: float) -> None:
        self.address = address
        self.topic = topic
        self.start_s = start_s
        self.sent = 0
        self.received = 0
        self.latencies_ms: deque[float] = deque(maxlen=LATENCIES_KEPT)
        self.recent: deque[tuple[int, int, dict[str, Any]]] = deque(maxlen=RECENT_RECORDS)
        self.began_at = self.shown_at = time.monotonic()
        self.shown_received = 0
        self.seconds = 0.0

    def __enter__(self) -> Screen:
        self.began_at = self.shown_at = time.monotonic()
        self.begin()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.end()

    def take(self, message: Message, now_ns: int) -> None:
        """One record from the consumer."""
        if message.error() is not None:
            return
        self.received += 1
        sent_ns = dict(message.headers() or []).get("sent-ns")
        if sent_ns is not None and time.monotonic() - self.began_at > WARM_UP_S:
            self.latencies_ms.append((now_ns - int(sent_ns)) / 1e6)
        record = json.loads(message.value() or b"{}")
        self.recent.append((message.partition() or 0, message.offset() or 0, record))

    def refresh(self, sent: int) -> None:
        self.sent = sent
        now = time.monotonic()
        if now - self.shown_at >= self.interval_s:
            rate = (self.received - self.shown_received) / (now - self.shown_at)
            self.show(rate)
            self.shown_at, self.shown_received = now, self.received

    def finish(self, sent: int) -> None:
        """Everything was sent and read that will be."""
        self.sent = sent
        self.seconds = time.monotonic() - self.began_at

    @property
    def interval_s(self) -> float:
        return LINE_EVERY_S

    def begin(self) -> None:
        say(f"broker on {self.address}, started in {self.start_s:.2f} s; topic {self.topic}; Ctrl-C stops")

    def end(self) -> None:
        pass

    def show(self, rate: float) -> None:
        spread = percentiles(self.latencies_ms)
        latency = f"latency p50 {duration_text(spread['p50'])}, p99 {duration_text(spread['p99'])}" if spread else ""
        last = json.dumps(self.recent[-1][2], separators=(",", ":")) if self.recent else ""
        say(f"{self.received:>8,} consumed  {rate:>7,.0f}/s  {latency}  {last}")

    def summary(self) -> dict[str, Any]:
        return {
            "produced": self.sent,
            "consumed": self.received,
            "seconds": round(self.seconds or time.monotonic() - self.began_at, 3),
            "latency_ms": {name: round(value, 3) for name, value in percentiles(self.latencies_ms).items()},
        }

    def print_summary(self) -> None:
        facts = self.summary()
        spread = percentiles(self.latencies_ms)
        latency = ", ".join(f"{name} {duration_text(value)}" for name, value in spread.items())
        say(
            f"{count_text(facts['produced'], 'record')} produced, {facts['consumed']:,} consumed "
            f"in {facts['seconds']:.1f} s" + (f"; end to end {latency}" if latency else "")
        )
        say(
            "the broker has stopped; all is well"
            if facts["produced"] == facts["consumed"]
            else "the broker has stopped"
        )


class JsonScreen(Screen):
    """One object a second, and one at the end."""

    def begin(self) -> None:
        print_json({"kind": "ready", "bootstrap_servers": self.address, "topic": self.topic})

    def show(self, rate: float) -> None:
        print_json({"kind": "progress", "records_per_second": round(rate, 1), **self.summary()})

    def print_summary(self) -> None:
        print_json({"kind": "summary", **self.summary()})


class LiveScreen(Screen):
    """A table that stays in place."""

    live: Live

    @property
    def interval_s(self) -> float:
        return FRAME_EVERY_S

    def begin(self) -> None:
        from rich.live import Live  # noqa: PLC0415 - rich is only for those who watch

        self.rates: deque[tuple[float, int]] = deque(maxlen=int(2 / FRAME_EVERY_S))
        self.live = Live(self.picture(0), auto_refresh=False)
        self.live.start()

    def end(self) -> None:
        self.live.stop()

    def show(self, rate: float) -> None:
        now = time.monotonic()
        self.rates.append((now, self.received))
        then, received = self.rates[0]
        steady = (self.received - received) / (now - then) if now > then else rate
        self.live.update(self.picture(steady), refresh=True)

    def picture(self, rate: float) -> RenderableType:
        from rich.console import Group  # noqa: PLC0415 - rich is only for those who watch
        from rich.table import Table  # noqa: PLC0415 - rich is only for those who watch
        from rich.text import Text  # noqa: PLC0415 - rich is only for those who watch

        spread = percentiles(self.latencies_ms)
        head = Text.assemble(
            ("Odradek", "bold cyan"), f"  broker on {self.address}, started in {self.start_s:.2f} s\n\n",
            ("produced ", "dim"), (f"{self.sent:,}", "bold"), ("   consumed ", "dim"), (f"{self.received:,}", "bold"),
            ("   rate ", "dim"), (f"{rate:,.0f}/s", "bold"),
            ("   latency p50 ", "dim"), (duration_text(spread.get("p50", 0.0)), "bold green"),
            ("  p99 ", "dim"), (duration_text(spread.get("p99", 0.0)), "bold green"),
        )  # fmt: skip
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for title in ("topic", "partition", "offset", "time", "rig", "production", "pressure", "temperature", "oil %"):
            table.add_column(title, justify="left" if title in {"topic", "time"} else "right", no_wrap=True)
        for partition, offset, record in self.recent:
            readings = record["sensor_readings"]
            hot = "red" if readings["pressure"] > 125 else ""
            table.add_row(
                self.topic, str(partition), f"{offset:,}", record["timestamp"], str(record["hcid"]),
                str(record["production"]), Text(str(readings["pressure"]), style=hot), str(readings["temperature"]),
                str(readings["oil_percentage"]),
            )  # fmt: skip
        for _ in range(RECENT_RECORDS - len(self.recent)):
            table.add_row()
        foot = Text.assemble(
            ("in another terminal: ", "dim"), f"odradek consume {self.topic} --from-beginning -b {self.address}",
            ("    Ctrl-C stops", "dim"),
        )  # fmt: skip
        return Group(head, Text(), table, Text(), foot)


def chosen_screen(address: str, topic: str, start_s: float, as_json: bool) -> Screen:

    if as_json:
        return JsonScreen(address, topic, start_s)
    return (LiveScreen if sys.stdout.isatty() else Screen)(address, topic, start_s)
