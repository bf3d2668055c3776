"""`odradek demo`: a broker, a topic, a producer and a consumer, with the records on the screen.

A live table on a terminal, otherwise a line per second, as text or JSON. The records of this run, which are timed, have
a header; those of other producers are shown as text.
"""

from __future__ import annotations

import dataclasses
import json
import os
import threading
import time
import uuid
from collections import deque
from typing import Any, NamedTuple, Self

import click
from confluent_kafka import Message, TopicPartition

from odradek.admin.cluster import Cluster
from odradek.admin.errors import NoSuchTopic
from odradek.cli.client.options import DEFAULT_BOOTSTRAP_SERVER
from odradek.cli.demo import local_brokers
from odradek.cli.demo.cluster_demo import run_cluster_demo
from odradek.cli.framework.commands import command
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.cli.framework.options import format_option, option
from odradek.cli.framework.output import LiveLines, faint, live_lines, one_line
from odradek.cli.framework.parameter_types import POSITIVE
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text, duration_text, percentiles
from odradek.examples.folders import find_example
from odradek.examples.simulator.loading import load_simulation
from odradek.examples.simulator.model import Flaws
from odradek.examples.simulator.population import Population
from odradek.examples.simulator.producer import RecordProducer, producer_settings, sending
from odradek.local.child_process import command_name

HEADER = "odradek-demo"  # its value is the id of the run and the time of sending
RECENT_RECORDS = 12
LATENCIES_KEPT = 20_000
LINE_EVERY_S = 1.0
FRAME_EVERY_S = 0.1
WARM_UP_NS = 500_000_000  # after the first record; until then connections are opened and caches filled
COLUMNS = {  # title and width: 78 characters in all, for a terminal of 80
    "partition": 9, "offset": 10, "time": 8, "rig": 3, "production": 10, "pressure": 8, "temperature": 11, "oil %": 5
}  # fmt: skip
TOPIC = "rigs"
PARTITIONS = 3
PUMPS = 12
DRAIN_S = 3.0
LOOK_INTERVAL_S = 1.0  # between two checks whether the topic exists


def sent_header(run_id: str, now_ns: int) -> list[tuple[str, str | bytes | None]]:
    return [(HEADER, f"{run_id} {now_ns}".encode())]


class DemoRecord(NamedTuple):
    """`sent_ns` and `readings` are set for records of this run only."""

    partition: int
    offset: int
    text: str
    sent_ns: int | None = None
    readings: tuple[str, ...] = ()
    is_hot: bool = False


def read_demo_record(message: Message, run_id: str) -> DemoRecord:
    value = message.value()
    text = one_line(None if value is None else value.decode(errors="replace"))
    place = (message.partition() or 0, message.offset() or 0)
    sent_ns = sent_by(run_id, message)
    if sent_ns is None:
        return DemoRecord(*place, text)
    try:
        fields: dict[str, Any] = json.loads(value or b"")
        sensors = fields["sensor_readings"]
        shown = [str(fields["timestamp"]).rpartition(" ")[2], fields["hcid"], fields["production"]]
        shown += [sensors[name] for name in ("pressure", "temperature", "oil_percentage")]
        return DemoRecord(*place, text, sent_ns, tuple(map(str, shown)), sensors["pressure"] > 125)
    except (ValueError, LookupError, TypeError, RecursionError):  # another producer's value with this run's header
        return DemoRecord(*place, text)


def sent_by(run_id: str, message: Message) -> int | None:
    """When this run sent the record; None for a record of another producer."""
    stamp = dict(message.headers() or []).get(HEADER)
    if not isinstance(stamp, bytes):
        return None
    owner, _, sent_ns = stamp.partition(b" ")
    return int(sent_ns) if owner == run_id.encode() and sent_ns.isdigit() and len(sent_ns) < 20 else None


class Screen(local_brokers.DemoScreen):
    """Counts consumed records. Prints a line or an object every second, or draws a table in place with `live`."""

    def __init__(
        self, address: str, topic: str, start_s: float, *, as_json: bool = False, live: LiveLines | None = None
    ) -> None:
        super().__init__(as_json=as_json, live=live)
        self.address = address
        self.topic = topic
        self.start_s = start_s
        self.run_id = uuid.uuid4().hex
        self.sent = 0
        self.received = 0  # records of this run
        self.others = 0  # records that other producers wrote to the topic
        self.latencies_ms: deque[float] = deque(maxlen=LATENCIES_KEPT)
        self.measured_from_ns: int | None = None  # latencies are those of records sent since then
        self.recent: deque[DemoRecord] = deque(maxlen=RECENT_RECORDS)
        self.began_at = self.shown_at = time.monotonic()
        self.seconds = 0.0
        self._interval_s = LINE_EVERY_S if live is None else FRAME_EVERY_S
        frames = 1 if live is None else int(2 / FRAME_EVERY_S)  # over which the rate is a mean
        self._rates = deque([(self.began_at, 0)], maxlen=frames)

    def __enter__(self) -> Self:
        self.began_at = self.shown_at = time.monotonic()
        self._rates[0] = self.began_at, 0
        super().__enter__()
        if self.live is not None:
            self.live.draw(self.picture(0))
        else:
            text = f"broker on {self.address}, started in {self.start_s:.2f} s; topic {self.topic}; Ctrl-C stops"
            self.print({"kind": "ready", "bootstrap_servers": self.address, "topic": self.topic}, text)
        return self

    def take(self, message: Message, now_ns: int) -> None:
        """Count a record from the consumer."""
        if message.error() is not None:
            return
        record = read_demo_record(message, self.run_id)
        self.recent.append(record)
        if record.sent_ns is None:
            self.others += 1
            return
        self.received += 1
        if self.measured_from_ns is None:
            self.measured_from_ns = now_ns + WARM_UP_NS
        if record.sent_ns >= self.measured_from_ns:
            self.latencies_ms.append((now_ns - record.sent_ns) / 1e6)

    def refresh(self, sent: int) -> None:
        self.sent = sent
        now = time.monotonic()
        if now - self.shown_at >= self._interval_s:
            then, received = self._rates[0]
            self._rates.append((now, self.received))
            self.shown_at = now
            self.show((self.received - received) / (now - then))

    def finish(self, sent: int) -> None:
        """End the measurement: nothing more is sent or read."""
        self.sent = sent
        self.seconds = time.monotonic() - self.began_at

    def show(self, rate: float) -> None:
        if self.live is not None:
            self.live.draw(self.picture(rate))
            return
        spread = percentiles(self.latencies_ms)
        latency = f"latency p50 {duration_text(spread['p50'])}, p99 {duration_text(spread['p99'])}" if spread else ""
        last = self.recent[-1].text if self.recent else "waiting for the first record"
        text = f"{self.received:>8,} consumed  {rate:>7,.0f}/s  {latency}  {last}"
        self.print({"kind": "progress", "records_per_second": round(rate, 1), **self.summary()}, text)

    def picture(self, rate: float) -> list[str]:
        spread = percentiles(self.latencies_ms)
        counts = {"produced": f"{self.sent:,}", "consumed": f"{self.received:,}", "rate": f"{rate:,.0f}/s"}
        counts |= {"other producers": f"{self.others:,}"} if self.others else {}
        latencies = {
            "latency p50": duration_text(spread.get("p50", 0.0)), "p99": duration_text(spread.get("p99", 0.0))
        }  # fmt: skip
        is_default = self.address == DEFAULT_BOOTSTRAP_SERVER and not os.environ.get("ODRADEK_BOOTSTRAP_SERVER")
        where = "" if is_default else f" -b {self.address}"
        return [
            f"{local_brokers.TITLE}  broker on {self.address}, started in {self.start_s:.2f} s; topic {self.topic}",
            "",
            local_brokers.figures_line(counts),
            local_brokers.figures_line(latencies, fg="green"),
            "",
            faint("  ".join(title.rjust(width) for title, width in COLUMNS.items())),
            *map(record_line, self.recent),
            *[""] * (RECENT_RECORDS - len(self.recent)),
            "",
            faint("Ctrl-C stops. In another terminal, read the topic with:"),
            f"{command_name()} consume {self.topic} --from-beginning{where}",
        ]

    def summary(self) -> dict[str, Any]:
        return {
            "produced": self.sent,
            "consumed": self.received,
            "of_others": self.others,
            "seconds": round(self.seconds or time.monotonic() - self.began_at, 3),
            "latency_ms": {name: round(value, 3) for name, value in percentiles(self.latencies_ms).items()},
        }

    def print_summary(self) -> None:
        facts = self.summary()
        spread = percentiles(self.latencies_ms)
        latency = ", ".join(f"{name} {duration_text(value)}" for name, value in spread.items())
        produced, consumed = facts["produced"], facts["consumed"]
        lines = [f"{count_text(produced, 'record')} produced, {consumed:,} consumed in {facts['seconds']:.1f} s"]
        lines += [f"{count_text(self.others, 'record')} from other producers"] if self.others else []
        lines += [f"end-to-end latency: {latency}"] if latency else []
        lines += [f"{'all records were consumed; ' if produced == consumed else ''}the broker has stopped"]
        self.print({"kind": "summary", **facts}, "\n".join(lines))


def record_line(record: DemoRecord) -> str:
    """The readings in their columns; or the text of a record of another producer."""
    cells = [str(record.partition), f"{record.offset:,}", *record.readings]
    shown = [
        click.style(cell.rjust(width), fg="red" if record.is_hot and title == "pressure" else None)
        for cell, (title, width) in zip(cells, COLUMNS.items(), strict=False)
    ]
    return "  ".join([*shown, *([] if record.readings else [click.style(record.text, italic=True)])])


@command(
    ("until Ctrl-C", "odradek demo"),
    ("ten seconds, on another port, and keep the data", "odradek demo --seconds 10 --port 9192 --data-dir data"),
    ("in another terminal, while the demo runs", "odradek consume rigs --from-beginning"),
    ("three brokers with ZooKeeper; keys 1, 2 and 3 kill and revive them", "odradek demo --brokers 3"),
)
@option("--seconds", "N", POSITIVE, "Stop N seconds after the first record.")
@local_brokers.port_option
@option("--data-dir", None, click.Path(file_okay=False), "Data directory of the broker. Default: a temporary one.")
@option("--rate", "N", POSITIVE, "Records per second.", default=50)
@local_brokers.brokers_option
@option(
    "--kill-every", "SECONDS", POSITIVE,
    "With --brokers: kill a leader in every period, and start it again half a period later.",
)  # fmt: skip
@format_option
def demo(
    seconds: float | None, port: int, data_dir: str | None, rate: float, brokers: int, kill_every: float | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Run a broker, a producer and a consumer, and show the records.

    Simulated readings of oil rigs go to the topic `rigs`. Ctrl-C stops everything. The first half second is not part of
    the latency.

    With --brokers 3, run ZooKeeper and three brokers, and show leaders, in-sync replicas and acknowledgements of three
    partitions. A key kills a broker or starts it again, and the gap in the acknowledgements is shown. At the end
    everything is read back and compared with what was acknowledged.
    """
    if brokers == 1 and kill_every is not None:
        raise click.UsageError("--kill-every needs --brokers 2 or more")
    local_brokers.check_ports(port, brokers, "demo")
    if brokers > 1:
        run_cluster_demo(brokers, port, data_dir, rate, seconds, kill_every, as_json=as_json)
        return
    began_at = time.monotonic()
    with local_brokers.local_broker(port, data_dir) as running:
        live = live_lines(as_json=as_json)
        start_s = time.monotonic() - began_at
        screen = Screen(running.bootstrap_servers, TOPIC, start_s, as_json=as_json, live=live)
        stream(Cluster(running.bootstrap_servers, {}), screen, seconds, rate)
    screen.print_summary()


def stream(cluster: Cluster, screen: Screen, seconds: float | None, rate: float) -> None:
    """Produce and consume the records of a small fleet, none late or malformed, for some seconds or until Ctrl-C."""
    cluster.create_topic(TOPIC, PARTITIONS)  # it may exist: --data-dir of an earlier demo
    consumer = cluster.consumer({"fetch.wait.max.ms": 100})
    topic = cluster.describe_topic(TOPIC)
    partitions = [partition.id for partition in topic.partitions]
    ends = cluster.latest_offsets(TOPIC, partitions)
    consumer.assign([TopicPartition(TOPIC, partition, ends[partition]) for partition in partitions])
    simulation = dataclasses.replace(load_simulation(find_example(TOPIC).simulator, {}), count=PUMPS, flaws=Flaws())
    producer = cluster.producer({**producer_settings(rate), "linger.ms": 0})
    sender = RecordProducer(
        producer, TOPIC, Population(simulation), rate,
        headers=lambda: sent_header(screen.run_id, time.perf_counter_ns()),
    )  # fmt: skip
    is_stopped = threading.Event()
    is_deleted = False
    deadline: float | None = None  # set when the first record is consumed

    def take_records(timeout_s: float) -> None:
        first = consumer.poll(timeout_s)
        for message in [] if first is None else [first, *consumer.consume(1000, 0)]:
            screen.take(message, time.perf_counter_ns())

    try:
        with screen, stop_on_interrupt(is_stopped):
            with sending(sender, is_stopped):
                looked_at = time.monotonic()
                while not is_stopped.is_set() and (deadline is None or time.monotonic() < deadline):
                    take_records(0.1)
                    screen.refresh(sender.counts.sent)
                    if deadline is None and seconds is not None and screen.received:
                        deadline = time.monotonic() + seconds
                    if time.monotonic() - looked_at >= LOOK_INTERVAL_S:
                        looked_at = time.monotonic()
                        is_deleted = not topic_exists(cluster, topic.topic_id)
                        if is_deleted:
                            break
            drained_by = time.monotonic() + (0.0 if is_deleted or sender.failure else DRAIN_S)
            while screen.received < sender.counts.sent and time.monotonic() < drained_by:
                take_records(0.1)
            screen.finish(sender.counts.sent)
    finally:
        consumer.close()
    if is_deleted:
        raise Failure(f"topic {TOPIC} was deleted; start the demo again to create it")
    if sender.failure is not None:
        raise cluster.failure(sender.failure.args[0], f"topic {TOPIC}")


def topic_exists(cluster: Cluster, topic_id: str) -> bool:
    """Compare by topic id, because a broker may create a deleted topic again when it is written to."""
    try:
        return cluster.describe_topic(TOPIC).topic_id == topic_id
    except NoSuchTopic:
        return False
    except Failure:
        return True  # other failures reach the producer, too
