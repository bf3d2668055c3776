"""The metrics of a run: the key in the results, the label in a table, and the format of a figure. Pure."""

from dataclasses import dataclass

from bench.summary import Spread


@dataclass(frozen=True, slots=True)
class Metric:
    key: str
    label: str
    unit: str
    decimals: int
    worse: str = "slower"
    """The word for a worse figure: slower, more or fewer."""
    is_higher_better: bool = False

    def write(self, value: float) -> str:
        return f"{value:,.{self.decimals}f}"

    def write_spread(self, figures: Spread | None) -> str:
        """The median, and the extremes if there was more than one run."""
        if figures is None:
            return "–"
        if figures.count == 1:
            return self.write(figures.median)
        return f"{self.write(figures.median)} ({self.write(figures.minimum)}–{self.write(figures.maximum)})"


METRICS = {
    metric.key: metric
    for metric in (
        Metric("records_per_s", "records/s", "records/s", 0, is_higher_better=True),
        Metric("commits_per_s", "commits/s", "commits/s", 0, is_higher_better=True),
        Metric("transactions_per_s", "transactions/s", "transactions/s", 0, is_higher_better=True),
        Metric("mb_per_s", "MB/s", "MB/s", 1, is_higher_better=True),
        Metric("broker_cpu_s_per_gb", "broker CPU, s per GB", "s", 2, "more"),
        Metric("broker_cpu_us_per_commit", "broker CPU, µs per commit", "µs", 0, "more"),
        Metric("broker_cpu_us_per_transaction", "broker CPU, µs per transaction", "µs", 0, "more"),
        Metric("broker_cpu_s", "broker CPU, s", "s", 2, "more"),
        Metric("broker_cpu_percent", "broker CPU, % of a core", "%", 1, "more"),
        Metric("p50_ms", "p50, ms", "ms", 2),
        Metric("p99_ms", "p99, ms", "ms", 2),
        Metric("plain_records_per_s", "records/s without them", "records/s", 0, is_higher_better=True),
        Metric("single_records_per_s", "records/s with 1 process", "records/s", 0, is_higher_better=True),
        Metric("gain_times", "rate ÷ that of 1 process", "×", 2, is_higher_better=True),
        Metric("cost_percent", "cost, % of the rate", "%", 1, "more"),
        Metric("cpu_cost_percent", "cost, % of broker CPU", "%", 1, "more"),
        Metric("handshakes_per_s", "handshakes/s", "handshakes/s", 0, is_higher_better=True),
        Metric("cpu_ms_per_handshake", "broker CPU, ms per handshake", "ms", 2, "more"),
        Metric("handshaking_p99_ms", "p99 of others during handshakes, ms", "ms", 2),
        Metric("handshaking_times", "p99 of others during handshakes ÷ idle p99", "×", 2),
        Metric("start_s", "time, s", "s", 2),
        Metric("expulsions", "members expelled", "", 0, "more"),
        Metric("replay_s", "time until all are served, s", "s", 2),
        Metric("memory_mb", "resident memory, MB", "MB", 1, "more"),
        Metric("connections_mb_more", "additional memory, MB", "MB", 1, "more"),
        Metric("kb_per_connection", "additional memory per connection, KB", "KB", 2, "more"),
        Metric("connections", "connections held", "", 0, "fewer", is_higher_better=True),
        Metric("by_hand_records_per_s", "a job written by hand, records/s", "records/s", 0, is_higher_better=True),
        Metric("by_hand_share", "share of the job written by hand", "", 2, is_higher_better=True),
        Metric("sent_per_s", "records/s of each stream", "records/s", 0, is_higher_better=True),
        Metric("joined_share", "joined ÷ sent in the interval", "", 2, is_higher_better=True),
        Metric("lag_first", "pairs not yet joined, mean of the first 20 s", "", 0, "more"),
        Metric("lag_last", "pairs not yet joined, mean of the last 20 s", "", 0, "more"),
        Metric("fetched_times", "bytes sent by the broker ÷ those of the topic", "×", 2, "more"),
        Metric("topic_bytes_per_record", "bytes of the topic per record", "", 0, "more"),
        Metric("validate_s", "time, s", "s", 2),
        Metric("recovery_s", "time until every partition serves, s", "s", 2),
        Metric("created_s", "created in, s", "s", 2),
        Metric("restart_s", "restart until every topic serves, s", "s", 2),
        Metric("restart_cpu_s", "broker CPU of the restart, s", "s", 2, "more"),
        Metric("descriptors", "descriptors with 5,000 connections", "", 0, "more"),
        Metric("compacted_100b_mb_per_s", "100 B records, MB per CPU second", "MB/s", 1, is_higher_better=True),
        Metric("compacted_1kb_mb_per_s", "1 KB records, MB per CPU second", "MB/s", 1, is_higher_better=True),
        Metric("cleaner_mb", "memory of the compaction process, MB", "MB", 1, "more"),
        Metric("caught_up_mb_per_s", "MB/s copied", "MB/s", 1, is_higher_better=True),
        Metric("catching_up_p99_ms", "p99 while it catches up, ms", "ms", 2),
        Metric("catching_up_times", "p99 while it catches up ÷ idle p99", "×", 2),
        Metric("quiet_p99_ms", "p99 on an idle broker, ms", "ms", 2),
        Metric("compacting_p99_ms", "p99 during compaction, ms", "ms", 2),
        Metric("compacting_times", "p99 during compaction ÷ idle p99", "×", 2),
        Metric("cold_p99_ms", "p99 during a cold read, ms", "ms", 2),
        Metric("cold_times", "p99 during a cold read ÷ idle p99", "×", 2),
    )
}
