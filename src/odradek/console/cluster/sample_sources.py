"""Where the values of the charts come from: functions of two snapshots, the previous one and the present one.

The values of `from_offsets_and_sizes` can be read from any Kafka cluster. A source that knows more, such as the metrics
of brokers, adds values under names of its own, and `views/charts` the charts that show them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from odradek.console.cluster.snapshot import Snapshot, growth_bytes, rates_by_topic
from odradek.console.models.traffic import values_between

SampleSource = Callable[[Snapshot, Snapshot], Mapping[str, float | None]]  # None: the value is not known


def from_offsets_and_sizes(before: Snapshot, after: Snapshot) -> dict[str, float | None]:
    seconds = after.seconds_since(before)
    return {
        "records": sum(rates_by_topic(before.ends, after.ends, seconds).values()),
        "bytes": growth_bytes(before.disks, after.disks) / seconds,
        "stored": float(sum(directory.stored_bytes for directory in after.disks.directories)),
        "under_replicated": float(after.health.under_replicated),
    }


def from_traffic(before: Snapshot, after: Snapshot) -> dict[str, float | None]:
    """What brokers of Odradek count themselves; it replaces the values of the same names that others are asked for.

    While a running broker lacks, the sums would be too small. Records are those of the offsets then. The growth of logs
    is no replacement for bytes: it counts every replica.
    """
    running = [broker.broker_id for broker in after.state.brokers.values() if not broker.is_fenced]
    measured = values_between(before.traffic, after.traffic, running)
    return {**measured} if measured or not after.traffic else {"bytes": None}
