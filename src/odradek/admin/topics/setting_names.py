"""Names of settings: for suggestions when one is mistyped, and for shell completion.

Topic settings are listed here, because a cluster without topics cannot be asked for them. Those of brokers and groups
are read from the cluster.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from odradek.admin.kafka_admin import ConfigResource, ResourceType
from odradek.conventions.failures import Failure, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from odradek.admin.cluster import Cluster

TOPIC_SETTINGS = (
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
)


@contextmanager
def suggesting_names(names: Iterable[str], known: Iterable[str] = TOPIC_SETTINGS) -> Iterator[None]:
    """Add suggestions for unknown setting names to a Failure. The broker alone decides which names are valid."""
    try:
        yield
    except Failure as failure:
        known = list(known)
        hints = [did_you_mean(name, known) for name in names if name not in known]
        raise Failure("; ".join([failure.message, *filter(None, hints)])) from None


def read_setting_names(cluster: Cluster, kind: ResourceType, name: str, timeout_s: float) -> list[str]:
    """The settings that the cluster lists for a resource."""
    resource = ConfigResource(kind, name)
    (future,) = cluster.admin().describe_configs([resource], request_timeout=timeout_s).values()
    return sorted(cluster.finish(future, f"settings of {kind.name.lower()} {name}"))
