"""One broker beside another that lacks something: rates of both in turns, and the cost as a share of the rate."""

import statistics
from collections.abc import Sequence

from bench.brokers import RunningBroker
from bench.generator import Generator
from bench.results import Run
from bench.throughput import run_once
from bench.turns import turn_order
from bench.workloads import GUARDED_ROUNDS, Workload


def alternate(
    generator: Generator, plain: RunningBroker, other: RunningBroker, workload: Workload
) -> list[tuple[Run, Run]]:
    """Runs of the plain broker with those of the other one, in rounds of alternating order, after a warm-up of both."""
    brokers = (plain, other)
    for broker in brokers:
        run_once(generator, broker, workload, None)
    runs: dict[int, list[Run]] = {plain.pid: [], other.pid: []}
    for number in range(1, GUARDED_ROUNDS + 1):
        for broker in turn_order(brokers, number):
            runs[broker.pid].append(run_once(generator, broker, workload, None))
    return list(zip(runs[plain.pid], runs[other.pid], strict=True))


def costs(pairs: Sequence[tuple[Run, Run]]) -> Run:
    """Medians of both rates, and of the costs of the rounds."""
    return {
        "records_per_s": statistics.median(each["records_per_s"] for _, each in pairs),
        "plain_records_per_s": statistics.median(each["records_per_s"] for each, _ in pairs),
        "cost_percent": cost_percent([(a["records_per_s"], b["records_per_s"]) for a, b in pairs]),
        "cpu_cost_percent": -cost_percent([(a["broker_cpu_s"], b["broker_cpu_s"]) for a, b in pairs]),
    }


def cost_percent(pairs: Sequence[tuple[float, float]]) -> float:
    """The median of how much less the second figure of each pair is."""
    return 100 * (1 - statistics.median(guarded / plain for plain, guarded in pairs))
