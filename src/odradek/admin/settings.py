"""Settings of topics, brokers, all brokers (a broker without a name) and groups: read, changed, and suggested when a
name is mistyped.

The names of topic settings are listed here, because a cluster without topics cannot be asked for them. Those of brokers
and groups are read from the cluster.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from odradek.admin.broker_requests import BrokerRequests, KnownBroker
from odradek.admin.errors import check
from odradek.admin.wire import TIMEOUT_S, Versions
from odradek.conventions.failures import Failure, did_you_mean
from odradek.protocol.messages import describe_configs
from odradek.protocol.messages import incremental_alter_configs as altering

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.protocol.schema import Request, Response

TOPIC_SETTINGS = (
    "cleanup.policy", "compression.gzip.level", "compression.lz4.level", "compression.type",
    "compression.zstd.level", "delete.retention.ms", "file.delete.delay.ms", "flush.messages", "flush.ms",
    "follower.replication.throttled.replicas", "index.interval.bytes",
    "leader.replication.throttled.replicas", "local.retention.bytes", "local.retention.ms",
    "max.compaction.lag.ms", "max.message.bytes", "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms", "message.timestamp.type", "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms", "min.insync.replicas", "preallocate", "remote.log.copy.disable",
    "remote.log.delete.on.disable", "remote.storage.enable", "retention.bytes", "retention.ms",
    "segment.bytes", "segment.index.bytes", "segment.jitter.ms", "segment.ms",
    "unclean.leader.election.enable",
)  # fmt: skip


R = TypeVar("R", bound="Response")
ALL_BROKERS = "broker-default"


class Kind(enum.IntEnum):
    """What has settings, with the codes of resources in requests."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16  # the subscriptions of `telemetry`
    GROUP = 32


class Operation(enum.IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """`value` is None for DELETE, which returns a setting to its default."""

    name: str
    value: str | None
    operation: Operation


class Setting(NamedTuple):
    """One setting and where its value comes from."""

    name: str
    value: str | None
    source: str
    is_default: bool
    is_read_only: bool
    is_sensitive: bool

    def as_object(self) -> dict[str, Any]:
        return {"value": self.value, "source": self.source, "default": self.is_default}


SOURCES = {
    0: "unknown", 1: "dynamic topic", 2: "dynamic broker", 3: "dynamic default broker", 4: "static broker",
    5: "default", 8: "group",
}  # fmt: skip


def read_settings(cluster: Cluster, kind: Kind, name: str, timeout_s: float = TIMEOUT_S) -> list[Setting]:
    """All settings of a topic, a broker or a group, by name; of all brokers those that were changed."""
    resource = describe_configs.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = describe_configs.DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    answer = _ask(cluster, kind, name, request, describe_configs.DescribeConfigsResponse, 1, timeout_s)
    (result,) = answer.results
    subject = f"settings of {kind.name.lower()} {name}" if name else ALL_BROKERS
    check(result.error_code, result.error_message, subject, "DescribeConfigs")
    return [
        Setting(each.name, each.value, source_name(each.config_source), bool(name) and has_default(each),
                each.read_only, each.is_sensitive)
        for each in sorted(result.configs, key=lambda each: each.name)
    ]  # fmt: skip


def has_default(setting: describe_configs.DescribeConfigsResourceResult) -> bool:
    """Whether the value is the default, or a broker's own setting with the same value: brokers with eligible leader
    replicas set min.insync.replicas for the cluster."""
    source = source_name(setting.config_source)
    if source in ("default", "dynamic topic"):
        return source == "default"
    return [setting.value] == [each.value for each in setting.synonyms if source_name(each.source) == "default"]


def source_name(source: int) -> str:
    return SOURCES.get(source, f"source {source}")


def alter_settings(cluster: Cluster, kind: Kind, name: str, changes: Iterable[Change]) -> None:
    """Failure if the broker refuses one of the changes: then none is made."""
    request = alter_request(kind, {name: changes})
    (result,) = _ask(cluster, kind, name, request, altering.IncrementalAlterConfigsResponse, 0, TIMEOUT_S).responses
    subject = f"{kind.name.lower()} {name}" if name else ALL_BROKERS
    check(result.error_code, result.error_message, subject, "AlterConfigs")


def alter_request(kind: Kind, changes: Mapping[str, Iterable[Change]]) -> altering.IncrementalAlterConfigsRequest:
    """The changes of each resource, by its name."""
    resources = []
    for name, of_resource in changes.items():
        configs = [
            altering.AlterableConfig(name=setting, value=value, config_operation=operation)
            for setting, value, operation in of_resource
        ]
        resources.append(altering.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs))
    return altering.IncrementalAlterConfigsRequest(resources=resources)


def changes_to(values: Mapping[str, str | None]) -> list[Change]:
    """None returns a setting to its default."""
    return [Change(name, value, Operation.DELETE if value is None else Operation.SET) for name, value in values.items()]


def _ask(
    cluster: Cluster, kind: Kind, name: str, request: Request, response_type: type[R], version: Versions,
    timeout_s: float,
) -> R:  # fmt: skip
    """Only a broker itself knows its settings; any broker knows all others."""
    cluster.check_reachable()
    requests = BrokerRequests(cluster, timeout_s)
    if kind is not Kind.BROKER or not name:
        return requests.ask_any(request, response_type, version)
    return requests.ask(_broker(requests, name), request, response_type, version)


def _broker(requests: BrokerRequests, name: str) -> KnownBroker:
    brokers, _answer = requests.metadata([])
    broker = brokers.get(int(name)) if name.isdecimal() else None
    if broker is None:
        raise Failure(f"there is no broker {name}")
    return broker


@contextmanager
def suggesting_names(names: Iterable[str], known: Iterable[str] = TOPIC_SETTINGS) -> Iterator[None]:
    """Add suggestions for unknown setting names to a Failure. The broker alone decides which names are valid."""
    try:
        yield
    except Failure as failure:
        known = list(known)
        hints = [hint for name in names if name not in known and (hint := did_you_mean(name, known))]
        if not hints:
            raise
        raise Failure("; ".join([failure.message, *hints])) from None


def read_setting_names(cluster: Cluster, kind: Kind, name: str, timeout_s: float = TIMEOUT_S) -> Sequence[str]:
    """The settings that the cluster lists for a resource."""
    return [each.name for each in read_settings(cluster, kind, name, timeout_s)]
