"""The workloads: one whole run of each broker as a warm-up, then A B B A …, each run on a fresh topic."""

import contextlib
import os
from collections.abc import Iterator, Sequence

from bench.brokers import RunningBroker
from bench.generator import Generator
from bench.processes import cpu_seconds
from bench.results import Experiment, Run
from bench.topics import fresh_topic
from bench.turns import OnRun, turn_order
from bench.workloads import COMMITS_PER_S, COMMITTING_GROUPS, PARTITIONS, RATE_RECORDS_PER_S, Workload

KEPT = (
    "records_per_s",
    "commits_per_s",
    "transactions_per_s",
    "mb_per_s",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "p999_ms",
    "max_ms",
    "client_cpu_s",
    "seconds",
)


def connection(broker: RunningBroker, workload: Workload) -> dict[str, object]:
    return {"brokers": broker.ssl_address, "ca": broker.ca} if workload.is_tls else {"brokers": broker.address}


def fill(generator: Generator, broker: RunningBroker, topic: str, workload: Workload) -> None:
    generator.run("produce", brokers=broker.address, topic=topic, records=workload.records, size=workload.record_bytes)
    os.sync()  # so that write-back does not fall into the measured time


@contextlib.contextmanager
def topics_to_read(
    generator: Generator, brokers: Sequence[RunningBroker], workload: Workload
) -> Iterator[dict[str, str]]:
    """One filled topic of each broker, by the broker's key, for a workload that reads; empty for other workloads."""
    with contextlib.ExitStack() as stack:
        topics = {}
        if workload.mode in {"consume", "transform"}:
            for broker in brokers:
                topics[broker.key] = stack.enter_context(fresh_topic(broker))
                fill(generator, broker, topics[broker.key], workload)
        yield topics


def run_once(generator: Generator, broker: RunningBroker, workload: Workload, filled_topic: str | None) -> Run:
    """The figures of one run, with the broker's CPU time."""
    with contextlib.ExitStack() as stack:
        reads_only = workload.mode == "consume"
        topic = filled_topic if reads_only else stack.enter_context(fresh_topic(broker))
        flags: dict[str, object] = {**connection(broker, workload), "topic": topic, "size": workload.record_bytes}
        match workload.mode:
            case "produce":
                flags |= {"records": workload.records, "batch": workload.batch_bytes}
                flags |= {"codec": workload.codec} if workload.codec != "none" else {}
            case "replay":
                flags |= {"records": workload.records, "batch": workload.batch_bytes}
            case "consume":
                flags |= {"records": workload.records}
            case "latency":
                flags |= {"rate": RATE_RECORDS_PER_S, "seconds": workload.seconds}
            case "commits":
                flags |= {"records": workload.records, "groups": COMMITTING_GROUPS}
            case "transform":
                flags |= {"source": filled_topic, "records": workload.records}
            case "open":
                flags |= {"producers": workload.producers, "partitions": PARTITIONS, "rate": COMMITS_PER_S}
        if workload.in_transaction:
            flags |= {"seconds": workload.seconds, "in_transaction": workload.in_transaction}
        before_s = cpu_seconds(broker.pid)
        report = generator.run(workload.mode, **flags)
        used_s = cpu_seconds(broker.pid) - before_s
    run = {name: float(report[name]) for name in KEPT if name in report}
    run["broker_cpu_s"] = used_s
    if workload.mode == "commits":
        run["broker_cpu_us_per_commit"] = used_s * 1e6 / report["records"]
    elif workload.in_transaction:
        run["broker_cpu_us_per_transaction"] = used_s * 1e6 / report["transactions"]
    else:
        run["broker_cpu_s_per_gb"] = used_s / (report["records"] * workload.record_bytes / 1e9)
    run["broker_cpu_percent"] = used_s / report["seconds"] * 100
    return run


def measure(
    generator: Generator, brokers: Sequence[RunningBroker], workload: Workload, rounds: range, on_run: OnRun
) -> Experiment:
    experiment = Experiment(workload.name, workload.title, workload.metrics)
    with topics_to_read(generator, brokers, workload) as filled:
        for broker in brokers:
            run_once(generator, broker, workload, filled.get(broker.key))
            on_run(workload.title, broker.title, "warm-up", None)
        for number in rounds:
            for broker in turn_order(brokers, number):
                run = run_once(generator, broker, workload, filled.get(broker.key))
                experiment.add(broker.key, run)
                on_run(workload.title, broker.title, f"round {number}", run)
    return experiment
