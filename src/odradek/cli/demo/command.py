"""`odradek demo`: a broker, a topic, a producer and a consumer, with the records on the screen."""

from __future__ import annotations

import dataclasses
import threading
import time

import click
from confluent_kafka import TopicPartition

from odradek.admin.cluster import Cluster
from odradek.admin.errors import NoSuchTopic
from odradek.cli.demo.cluster_demo import run_cluster_demo
from odradek.cli.demo.local_brokers import brokers_option, check_ports, local_broker, port_option
from odradek.cli.demo.screen import Screen, chosen_screen, sent_header
from odradek.cli.framework.commands import command
from odradek.cli.framework.interrupt import stop_on_interrupt
from odradek.cli.framework.options import format_option, option
from odradek.cli.framework.parameter_types import POSITIVE
from odradek.conventions.failures import Failure
from odradek.examples.folders import find_example
from odradek.examples.simulator.loading import load_simulation
from odradek.examples.simulator.model import Flaws
from odradek.examples.simulator.population import Population
from odradek.examples.simulator.producer import RecordProducer, producer_settings, sending

TOPIC = "rigs"
PARTITIONS = 3
PUMPS = 12
DRAIN_S = 3.0
LOOK_INTERVAL_S = 1.0  # between two checks whether the topic exists


@command(
    examples=[
        ("until Ctrl-C", "odradek demo"),
        ("ten seconds, on another port, and keep the data", "odradek demo --seconds 10 --port 9192 --data-dir data"),
        ("in another terminal, while the demo runs", "odradek consume rigs --from-beginning"),
        ("three brokers with ZooKeeper; keys 1, 2 and 3 kill and revive them", "odradek demo --brokers 3"),
    ]
)
@option("--seconds", "N", POSITIVE, "Stop N seconds after the first record.")
@port_option
@click.option(
    "--data-dir", type=click.Path(file_okay=False), help="Data directory of the broker. Default: a temporary one."
)
@option("--rate", "N", POSITIVE, "Records per second.", default=50)
@brokers_option
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
    check_ports(port, brokers, "demo")
    if brokers > 1:
        run_cluster_demo(brokers, port, data_dir, rate, seconds, kill_every, as_json=as_json)
        return
    began_at = time.monotonic()
    with local_broker(port, data_dir) as running:
        screen = chosen_screen(running.bootstrap_servers, TOPIC, time.monotonic() - began_at, as_json)
        stream(Cluster(running.bootstrap_servers, {}), screen, seconds, rate)
    screen.print_summary()


def stream(cluster: Cluster, screen: Screen, seconds: float | None, rate: float) -> None:
    """Produce the records of a small fleet, without late or malformed ones, and consume them, until the time is over or
    Ctrl-C."""
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
