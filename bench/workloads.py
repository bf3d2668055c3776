"""The workloads and the other experiments, at full size: six partitions, acks=all, mostly no compression."""

from dataclasses import dataclass, replace
from typing import Literal

PARTITIONS = 6
RATE_RECORDS_PER_S = 10_000
MEMORY_RECORDS = 10_000_000
IDLE_CONNECTIONS = 10_000
COMMITTING_GROUPS = 32
COMMITS_PER_S = 500  # of open transactions, while the delay of a commit is measured
GROUPS = 1_000  # of two members each
GROUPS_SECONDS = 30
REPLAYED_RECORDS = 1_000_000
REPLAYED_GROUPS = 1_000
REPLAYED_PARTITIONS = 100  # in each commit
RECOVERED_PARTITIONS = 1_000
RECOVERED_RECORDS = 13_000_000
MANY_TOPICS = 100
MANY_PARTITIONS = 100  # in each of them
MANY_CONNECTIONS = 5_000
COMPACTED_BYTES = 600_000_000
COMPACTED_KEYS = 100_000
CALM_SECONDS = 20
CALM_COMPACTED_BYTES = 2_500_000_000  # compaction takes longer than the measurement
COLD_RECORDS = 1_000_000  # of 1 KB, read repeatedly
RIGS_RECORDS_PER_S = 1_000
RIGS_WARM_UP_S = 90
RIGS_MEASURED_S = 30
RIGS_ROUNDS = 2
RIGS = ("rigs-realtime", "rigs-standard")
TRANSFORMED_RECORDS = 1_000_000
JOINED_RECORDS_PER_S = 20_000  # of each stream
READ_RECORDS = 20_000
JOIN_WARM_UP_S = 90
JOIN_MEASURED_S = 60
TRANSFORM_ROUNDS = 3

THROUGHPUT_METRICS = ["records_per_s", "mb_per_s", "broker_cpu_s_per_gb"]
LATENCY_METRICS = ["p50_ms", "p99_ms", "broker_cpu_percent"]
COMMIT_METRICS = ["commits_per_s", "p50_ms", "p99_ms", "broker_cpu_us_per_commit"]
TRANSACTION_METRICS = ["records_per_s", "p50_ms", "p99_ms", "broker_cpu_us_per_transaction"]
OPEN_METRICS = ["transactions_per_s", "p50_ms", "p99_ms", "broker_cpu_us_per_transaction"]


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    title: str
    mode: Literal["produce", "replay", "consume", "latency", "commits", "transactions", "transform", "open"]
    records: int
    """Commits in the mode "commits"; 0 in modes that run for a time."""
    record_bytes: int
    batch_bytes: int = 1_000_000
    seconds: int = 0
    in_transaction: int = 0
    """Records in a transaction; 0 without transactions."""
    producers: int = 1
    is_tls: bool = False
    codec: Literal["none", "lz4"] = "none"

    @property
    def metrics(self) -> list[str]:
        match self.mode:
            case "latency":
                return LATENCY_METRICS
            case "commits":
                return COMMIT_METRICS
            case "transactions" | "transform":
                return TRANSACTION_METRICS
            case "open":
                return OPEN_METRICS
        return THROUGHPUT_METRICS

    @property
    def size_text(self) -> str:
        match self.mode:
            case "latency" | "transactions" | "transform":
                return f"{self.seconds} s"
            case "commits":
                return f"{self.records:,} commits"
            case "open":
                return f"{self.seconds} s as fast as possible, {self.seconds} s at {COMMITS_PER_S} commits/s"
        return f"{self.records:,} records"

    def scaled(self, scale: float) -> "Workload":
        """The same workload at another size, with at least 600 records and one second, and at most as many
        producers."""
        return replace(
            self,
            records=max(600, int(self.records * scale)),
            seconds=max(1, round(self.seconds * scale)),
            producers=min(self.producers, max(32, int(self.producers * scale))),
        )


WORKLOADS = (
    Workload("produce-100b", "produce 100 B", "produce", 5_000_000, 100),
    Workload("produce-1kb", "produce 1 KB", "produce", 2_000_000, 1_000),
    Workload("produce-100b-16kb", "produce 100 B in 16 KB batches", "produce", 4_000_000, 100, batch_bytes=16_384),
    Workload("produce-100b-lz4", "produce 100 B in 16 KB batches, LZ4", "produce", 4_000_000, 100, 16_384, codec="lz4"),
    Workload("consume-100b", "consume 100 B", "consume", 10_000_000, 100),
    Workload("consume-1kb", "consume 1 KB", "consume", 3_000_000, 1_000),
    Workload("tls-produce-1kb", "produce 1 KB over TLS", "produce", 1_000_000, 1_000, is_tls=True),
    Workload("tls-consume-1kb", "consume 1 KB over TLS", "consume", 2_000_000, 1_000, is_tls=True),
    Workload("latency", "end to end at 10,000 records/s", "latency", 0, 100, seconds=10),
    Workload("commits", "commits of 32 groups at once", "commits", 50_000, 0),
    Workload("transactions-100", "transactions of 100 records", "transactions", 0, 100, seconds=2, in_transaction=100),
    Workload(
        "transactions-10000", "transactions of 10,000 records", "transactions", 0, 100, seconds=2, in_transaction=10_000
    ),
    Workload(
        "transactions-transform",
        "consume-transform-produce, 1,000 records in a transaction",
        "transform",
        2_000_000,  # more than are read in the time
        100,
        seconds=2,
        in_transaction=1_000,
    ),
    Workload(
        "transactions-open",
        "1,000 producers with an open transaction each",
        "open",
        0,
        100,
        seconds=2,
        in_transaction=10,
        producers=1_000,
    ),
)

START = "start"
MEMORY = "memory"
CONNECTIONS = "connections"
MEMBERS = "groups"
REPLAY = "replay"
FOOTPRINTS = {
    START: ("start to first acknowledged record", ["start_s", "broker_cpu_s"]),
    MEMORY: ("after 10 million 100 B records", ["memory_mb"]),
    CONNECTIONS: ("10,000 idle connections", ["connections", "connections_mb_more", "kb_per_connection"]),
    MEMBERS: ("heartbeats of 1,000 × 2 members", ["p50_ms", "p99_ms", "broker_cpu_s", "expulsions"]),
    REPLAY: ("start with a million offsets", ["replay_s", "broker_cpu_s"]),
}

SCALES = {
    "recovery": ("kill -9 with 1,000 partitions, 13 million records", ["recovery_s", "broker_cpu_s"]),
    "partitions": ("10,000 partitions", ["created_s", "memory_mb", "restart_s", "restart_cpu_s", "descriptors"]),
    "compaction": ("compaction", ["compacted_100b_mb_per_s", "compacted_1kb_mb_per_s", "cleaner_mb"]),
    "calm": (
        "p99 at 10,000 records/s beside other work",
        ["quiet_p99_ms", "compacting_p99_ms", "compacting_times", "cold_p99_ms", "cold_times"],
    ),
}

ACLS = 10_000
GUARDED_RECORDS = 2_000_000  # of 100 B, in batches of 16 KB
GUARDED_ROUNDS = 10  # without and with, in turns
HANDSHAKES_PER_S = 500
HANDSHAKE_SECONDS = 10
HANDSHAKE_METRICS = ["handshakes_per_s", "cpu_ms_per_handshake", "quiet_p99_ms", "handshaking_p99_ms"]
COST_METRICS = ["records_per_s", "plain_records_per_s", "cost_percent", "cpu_cost_percent"]
SECURITY = {
    "acls": ("produce 100 B in 16 KB batches with 10,000 ACLs", COST_METRICS),
    "quotas": ("produce 100 B in 16 KB batches with quotas that are never reached", COST_METRICS),
    "handshakes": ("TLS handshakes, then 500/s beside 10,000 records/s", [*HANDSHAKE_METRICS, "handshaking_times"]),
}

SMALL_BATCH_RECORDS = 600_000  # of 100 B
SMALL_BATCH_BYTES = 2_000
OWN_RATES = {
    "metrics": ("produce 100 B in 16 KB batches with metrics, read once a second", COST_METRICS),
    "processes": (
        "produce 100 B in 2 KB batches, encoded before, with 2 broker processes",
        ["records_per_s", "single_records_per_s", "gain_times", "broker_cpu_percent"],
    ),
}
OF_ODRADEK = frozenset({"acls", "quotas", *OWN_RATES})
"""Measured without Apache Kafka, beside Odradek without them."""

VALIDATE = "validate"
TRANSFORM = "transform"
JOIN = "join"
READS = "reads"
PIPELINES = {
    "rigs-realtime": ("rigs at 1,000 records/s, event to warning, realtime", ["p50_ms", "p99_ms"]),
    "rigs-standard": ("rigs at 1,000 records/s, event to warning, standard", ["p50_ms", "p99_ms"]),
    TRANSFORM: (
        "topic → JSON → two topics on Spark",
        ["records_per_s", "by_hand_records_per_s", "by_hand_share"],
    ),
    JOIN: (
        "join of two streams of 20,000 records/s",
        ["sent_per_s", "joined_share", "p50_ms", "p99_ms", "lag_first", "lag_last"],
    ),
    READS: ("bytes that the rigs fetch", ["fetched_times", "topic_bytes_per_record"]),
    VALIDATE: ("odradek pipeline validate, the rigs", ["validate_s"]),
}


@dataclass(frozen=True, slots=True)
class ClusterWorkload:
    title: str
    acks: Literal["1", "all"]
    records: int
    record_bytes: int


CLUSTER_LATENCY_SECONDS = 15
CLUSTER_ROUNDS = 3
CAUGHT_UP_BYTES = 3_000_000_000
IDLE_PARTITIONS = 2_000
IDLE_SETTLE_S = 15
IDLE_MEASURED_S = 30
CLUSTER_METRICS = ["records_per_s", "mb_per_s", "broker_cpu_s_per_gb", "p50_ms", "p99_ms"]
CLUSTER_WORKLOADS = {
    "cluster-acks1-100b": ClusterWorkload("3 brokers, replication 3, acks=1, 100 B", "1", 3_000_000, 100),
    "cluster-acks1-1kb": ClusterWorkload("3 brokers, replication 3, acks=1, 1 KB", "1", 1_000_000, 1_000),
    "cluster-all-100b": ClusterWorkload("3 brokers, replication 3, acks=all, 100 B", "all", 3_000_000, 100),
    "cluster-all-1kb": ClusterWorkload("3 brokers, replication 3, acks=all, 1 KB", "all", 1_000_000, 1_000),
}
CLUSTERS = {
    **{name: (workload.title, CLUSTER_METRICS) for name, workload in CLUSTER_WORKLOADS.items()},
    "cluster-catch-up": (
        "a new replica catches up, beside 10,000 records/s",
        ["caught_up_mb_per_s", "quiet_p99_ms", "catching_up_p99_ms", "catching_up_times"],
    ),
    "cluster-idle": ("2,000 idle partitions of replication 3, the busiest broker", ["broker_cpu_percent"]),
}
OTHERS = {**FOOTPRINTS, **SCALES, **SECURITY, **OWN_RATES, **CLUSTERS, **PIPELINES}

BROKER_NAMES = (*(workload.name for workload in WORKLOADS if not workload.is_tls), *FOOTPRINTS, *SCALES)
"""The experiments that measure a broker, without those that measure pipelines."""


@dataclass(frozen=True, slots=True)
class ComparedSize:
    """Rounds and size of an experiment that compares two versions. Rounds come in pairs: A B, then B A."""

    rounds: int = 6
    scale: float = 1.0
    is_default: bool = True
    """Whether it runs when no names are given; together these take less than 20 minutes on an idle machine."""


COMPARED_SIZES = dict.fromkeys(BROKER_NAMES, ComparedSize()) | {
    "latency": ComparedSize(scale=0.6),
    MEMORY: ComparedSize(4),
    CONNECTIONS: ComparedSize(4),
    MEMBERS: ComparedSize(4, 0.2),
    REPLAY: ComparedSize(4, 0.3),
    "recovery": ComparedSize(4, 0.3),
    "partitions": ComparedSize(4, 0.2),
    "compaction": ComparedSize(4, 0.5),
    "calm": ComparedSize(4, is_default=False),
}

TRANSACTIONS = tuple(workload.name for workload in WORKLOADS if workload.in_transaction)
TLS = tuple(workload.name for workload in WORKLOADS if workload.is_tls)
COMPRESSED = tuple(workload.name for workload in WORKLOADS if workload.codec != "none")
NEED_GO = frozenset({"commits", *TRANSACTIONS, *TLS, *COMPRESSED, *SECURITY, *OWN_RATES, MEMBERS, REPLAY})
"""The librdkafka generator does not do them: librdkafka joins groups and commits at times that it chooses itself."""

NAMES = (*(workload.name for workload in WORKLOADS), *OTHERS)
