"""Odradek beside itself: what its metrics cost, and what a second broker process gains on this machine."""

import contextlib
import shlex
import statistics
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from bench.brokers import PROPERTIES, START_DEADLINE_S, BrokerError, BrokerKind, RunningBroker, free_port, running
from bench.cluster_brokers import READY_PAUSE_S, knows_brokers
from bench.costs import alternate, costs
from bench.odradek_broker import Odradek
from bench.results import Experiment, Run
from bench.turns import Experiments
from bench.workloads import GUARDED_RECORDS, SMALL_BATCH_BYTES, SMALL_BATCH_RECORDS, Workload
from odradek.testing import zookeeper

UNMEASURED = Path(__file__).parent / "unmeasured_broker.py"
SCRAPE_EVERY_S = 1.0


class OwnRates(Experiments):
    def _metrics(self, kind: BrokerKind, directory: Path, _experiment: Experiment) -> Run:
        """The metrics are read once a second, as by a Prometheus with a short interval."""
        workload = Workload("metrics", "", "produce", GUARDED_RECORDS, 100, batch_bytes=16_384).scaled(self.scale)
        port = free_port()
        measured = kind.member({"metrics.listener": f"127.0.0.1:{port}"})
        unmeasured = broker_command(f"{shlex.quote(str(UNMEASURED))} broker", {"metrics.listener": ""})
        with (
            running(unmeasured, directory / "without") as plain,
            running(measured, directory / "with") as other,
            scraping(f"http://127.0.0.1:{port}/metrics"),
        ):
            return costs(alternate(self.generator, plain, other, workload))

    def _processes(self, _kind: BrokerKind, directory: Path, _experiment: Experiment) -> Run:
        """Small batches in requests that are encoded once, so that the brokers, not the generator, take most of both
        cores."""
        workload = Workload("processes", "", "replay", SMALL_BATCH_RECORDS, 100, batch_bytes=SMALL_BATCH_BYTES).scaled(
            self.scale
        )
        with contextlib.ExitStack() as stack:
            single, double = (self._start(stack, directory, count) for count in (1, 2))
            pairs = alternate(self.generator, single, double, workload)
        return {
            "records_per_s": statistics.median(each["records_per_s"] for _, each in pairs),
            "single_records_per_s": statistics.median(each["records_per_s"] for each, _ in pairs),
            "gain_times": statistics.median(b["records_per_s"] / a["records_per_s"] for a, b in pairs),
            "broker_cpu_percent": statistics.median(each["broker_cpu_percent"] for _, each in pairs),
        }

    def _start(self, stack: contextlib.ExitStack, directory: Path, count: int) -> RunningBroker:
        server = stack.enter_context(zookeeper())
        kind = broker_command(f"-m odradek broker --processes {count}", {"zookeeper.connect": server.connect})
        broker = stack.enter_context(running(kind, directory / str(count)))
        wait_for_brokers(broker.address, count)
        return broker


def broker_command(program: str, properties: dict[str, str]) -> Odradek:
    """A broker that the interpreter starts with `program`."""
    all_properties = {
        "listeners": "PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": "{directory}",
        **PROPERTIES,
        **properties,
    }
    overrides = " ".join(f"--override {shlex.quote(f'{name}={value}')}" for name, value in all_properties.items())
    return Odradek(f"{shlex.quote(sys.executable)} {program} {overrides}")


def wait_for_brokers(address: str, count: int) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while not knows_brokers(address, count):
        if time.monotonic() > deadline:
            raise BrokerError(f"{count} broker processes did not find each other in {START_DEADLINE_S} s")
        time.sleep(READY_PAUSE_S)


@contextlib.contextmanager
def scraping(url: str) -> Iterator[None]:
    """Reads the page repeatedly; a page that could not be read fails the experiment."""
    ended = threading.Event()
    failures: list[Exception] = []

    def scrape() -> None:
        try:
            while not ended.wait(SCRAPE_EVERY_S):
                with urllib.request.urlopen(url, timeout=10) as page:
                    page.read()
        except OSError as failure:
            failures.append(failure)

    thread = threading.Thread(target=scrape, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if failures:
        raise BrokerError(f"{url} could not be read: {failures[0]}")
