"""Odradek's performance targets, and whether a set of results meets them. Pure."""

from dataclasses import dataclass

from bench.metrics import METRICS
from bench.results import KAFKA, ODRADEK, Experiment
from bench.summary import ratio


@dataclass(frozen=True, slots=True)
class Target:
    experiment: str
    metric: str
    bound: float
    at_least: bool = False
    relative: bool = False
    """Whether the bound is a multiple of Apache Kafka's figure; otherwise it is in the metric's unit."""

    @property
    def text(self) -> str:
        sign = "≥" if self.at_least else "≤"
        if self.relative:
            return f"{sign} {self.bound:.2f} ×"
        metric = METRICS[self.metric]
        return f"{sign} {self.bound:,g} {metric.unit}".rstrip()

    def reached(self, experiment: Experiment) -> float | None:
        """The figure that is compared with the bound; None if it was not measured."""
        ours = experiment.figures(ODRADEK, self.metric)
        if self.relative:
            return ratio(ours, experiment.figures(KAFKA, self.metric))
        return None if ours is None else ours.median

    def is_met(self, experiment: Experiment) -> bool | None:
        """Compared as printed, so that a table never shows "1.00 ×" as missing a target of "≥ 1.00 ×"."""
        figure = self.reached(experiment)
        if figure is None:
            return None
        rounded = round(figure, 2 if self.relative else METRICS[self.metric].decimals)
        return rounded >= self.bound if self.at_least else rounded <= self.bound


def _throughput(experiment: str, rate: float, cpu: float) -> tuple[Target, Target]:
    return (
        Target(experiment, "records_per_s", rate, at_least=True, relative=True),
        Target(experiment, "broker_cpu_s_per_gb", cpu, relative=True),
    )


def _transactions(experiment: str, rate: str = "records_per_s") -> tuple[Target, Target, Target]:
    return (
        Target(experiment, rate, 1.0, at_least=True, relative=True),
        Target(experiment, "p50_ms", 1.0, relative=True),
        Target(experiment, "p99_ms", 1.0, relative=True),
    )


TARGETS = (
    *_throughput("tls-produce-1kb", 1.0, 1.0),
    *_throughput("tls-consume-1kb", 1.0, 1.0),
    Target("acls", "cost_percent", 3),
    Target("quotas", "cost_percent", 3),
    Target("metrics", "cost_percent", 3),
    Target("handshakes", "handshakes_per_s", 500, at_least=True),
    Target("handshakes", "handshaking_times", 2),
    *_throughput("produce-100b", 1.2, 0.25),
    *_throughput("produce-1kb", 1.5, 0.5),
    *_throughput("produce-100b-16kb", 1.0, 0.5),
    *_throughput("consume-100b", 1.0, 0.6),
    *_throughput("consume-1kb", 1.0, 0.6),
    Target("latency", "p50_ms", 1.0, relative=True),
    Target("latency", "p99_ms", 1.0, relative=True),
    Target("commits", "commits_per_s", 1.0, at_least=True, relative=True),
    Target("commits", "broker_cpu_us_per_commit", 1.0, relative=True),
    *_transactions("transactions-100"),
    *_transactions("transactions-10000"),
    *_transactions("transactions-transform"),
    *_transactions("transactions-open", "transactions_per_s"),
    Target("start", "start_s", 0.7),
    Target("memory", "memory_mb", 80),
    Target("connections", "connections_mb_more", 64),
    Target("groups", "p99_ms", 50),
    Target("groups", "expulsions", 0),
    Target("replay", "replay_s", 5),
    *_throughput("cluster-acks1-100b", 1.5, 0.5),
    *_throughput("cluster-acks1-1kb", 1.5, 0.5),
    *_throughput("cluster-all-100b", 1.5, 0.5),
    Target("cluster-all-100b", "p50_ms", 1.0, relative=True),
    Target("cluster-all-100b", "p99_ms", 1.0, relative=True),
    *_throughput("cluster-all-1kb", 1.5, 0.5),
    Target("cluster-all-1kb", "p50_ms", 1.0, relative=True),
    Target("cluster-all-1kb", "p99_ms", 1.0, relative=True),
    Target("cluster-catch-up", "caught_up_mb_per_s", 200, at_least=True),
    Target("cluster-catch-up", "catching_up_times", 2),
    Target("cluster-idle", "broker_cpu_percent", 10),
    Target("rigs-realtime", "p50_ms", 30),
    Target("rigs-standard", "p50_ms", 500),
    Target("transform", "records_per_s", 1.0, at_least=True, relative=True),
    Target("transform", "by_hand_share", 0.85, at_least=True),
    Target("join", "joined_share", 0.98, at_least=True),
    Target("reads", "fetched_times", 1.2),
    Target("validate", "validate_s", 1),
    Target("recovery", "recovery_s", 10),
    Target("partitions", "created_s", 20),
    Target("partitions", "memory_mb", 300),
    Target("partitions", "restart_s", 10),
    Target("partitions", "descriptors", 20_000),
    Target("compaction", "compacted_100b_mb_per_s", 50, at_least=True),
    Target("compaction", "compacted_1kb_mb_per_s", 200, at_least=True),
    Target("calm", "compacting_times", 2),
    Target("calm", "cold_times", 2),
)


def target_of(experiment: str, metric: str) -> Target | None:
    return next((each for each in TARGETS if (each.experiment, each.metric) == (experiment, metric)), None)
