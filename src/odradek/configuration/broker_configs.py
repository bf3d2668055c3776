"""The broker's configuration from the file, the environment and the command line, checked once and typed.

A `BrokerConfig` never changes. Settings altered at run time give a new one, by `with_dynamic`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, cast

from odradek.configuration.broker_config_table import BROKER_CONFIGS
from odradek.configuration.broker_credentials import broker_credentials
from odradek.configuration.config_types import ConfigDefinition, ConfigError, Value
from odradek.configuration.known_properties import KNOWN_PROPERTIES, UnknownPropertyError, base_name, is_known
from odradek.configuration.listeners import (
    Listener,
    check_advertised_listeners,
    check_listen_addresses,
    listener_protocols,
    parse_listeners,
    parse_protocol_map,
    without_controllers,
)
from odradek.configuration.sasl_listeners import SaslListener, is_sasl_property, resolve_sasl_listeners
from odradek.configuration.tls_config_table import TLS_CONFIGS
from odradek.configuration.tls_settings import principal_mapping_rules, tls_settings
from odradek.configuration.topic_config_table import TOPIC_CONFIGS
from odradek.conventions.dataclass import dataclass
from odradek.security.tls.settings import ClientAuth

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.security.protocols import SecurityProtocol
    from odradek.security.tls.settings import TlsSettings

_OF_LISTENERS = ("max.connections", "max.connection.creation.rate")  # may have the prefix of a listener
T = TypeVar("T")
DEFAULT_NODE_ID = 0


class IgnoredProperty(NamedTuple):
    """A Kafka property that is set but that Odradek does not use; reported in the log."""

    name: str
    reason: str


class _Setting(Generic[T]):
    """Reads one typed value by its Kafka name."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, config: BrokerConfig, _owner: type[BrokerConfig] | None = None) -> T:
        return cast("T", config.values[self._name])


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    static_values: Mapping[str, str]
    dynamic_default_values: Mapping[str, str]
    dynamic_broker_values: Mapping[str, str]
    values: Mapping[str, Value]
    topic_defaults: Mapping[str, Value]
    listeners: tuple[Listener, ...]
    advertised_listeners: tuple[Listener, ...]
    listener_protocols: Mapping[str, SecurityProtocol]
    inter_broker_listener_name: str
    listener_max_connections: Mapping[str, int]
    """`listener.name.<listener>.max.connections`, where it is set."""
    sasl_listeners: Mapping[str, SaslListener]
    listener_connection_rates: Mapping[str, int]
    """`listener.name.<listener>.max.connection.creation.rate`, where it is set."""
    max_connections_per_ip_overrides: Mapping[str, int]
    log_dirs: tuple[str, ...]
    ignored_properties: tuple[IgnoredProperty, ...]

    node_id = _Setting[int]("node.id")
    rack = _Setting["str | None"]("broker.rack")
    num_partitions = _Setting[int]("num.partitions")
    default_replication_factor = _Setting[int]("default.replication.factor")
    absent_broker_replacement_ms = _Setting[int]("absent.broker.replacement.ms")
    auto_leader_rebalance_enable = _Setting[bool]("auto.leader.rebalance.enable")
    leader_imbalance_check_interval_seconds = _Setting[int]("leader.imbalance.check.interval.seconds")
    unclean_leader_election_interval_ms = _Setting[int]("unclean.leader.election.interval.ms")
    auto_create_topics_enable = _Setting[bool]("auto.create.topics.enable")
    delete_topic_enable = _Setting[bool]("delete.topic.enable")
    fetch_max_bytes = _Setting[int]("fetch.max.bytes")
    fetch_session_cache_slots = _Setting[int]("max.incremental.fetch.session.cache.slots")
    max_request_partition_size_limit = _Setting[int]("max.request.partition.size.limit")
    client_telemetry_enable = _Setting[bool]("client.telemetry.enable")
    telemetry_max_bytes = _Setting[int]("telemetry.max.bytes")
    socket_request_max_bytes = _Setting[int]("socket.request.max.bytes")
    queued_max_request_bytes = _Setting[int]("queued.max.request.bytes")
    connections_max_idle_ms = _Setting[int]("connections.max.idle.ms")
    max_connections = _Setting[int]("max.connections")
    max_connections_per_ip = _Setting[int]("max.connections.per.ip")
    max_connection_creation_rate = _Setting[int]("max.connection.creation.rate")
    quota_window_num = _Setting[int]("quota.window.num")
    quota_window_size_seconds = _Setting[int]("quota.window.size.seconds")
    controller_quota_window_num = _Setting[int]("controller.quota.window.num")
    controller_quota_window_size_seconds = _Setting[int]("controller.quota.window.size.seconds")
    log_flush_offset_checkpoint_interval_ms = _Setting[int]("log.flush.offset.checkpoint.interval.ms")
    log_cleaner_enable = _Setting[bool]("log.cleaner.enable")
    log_cleaner_backoff_ms = _Setting[int]("log.cleaner.backoff.ms")
    log_cleaner_dedupe_buffer_size = _Setting[int]("log.cleaner.dedupe.buffer.size")
    log_cleaner_io_max_bytes_per_second = _Setting[float]("log.cleaner.io.max.bytes.per.second")
    log_retention_check_interval_ms = _Setting[int]("log.retention.check.interval.ms")
    broker_heartbeat_interval_ms = _Setting[int]("broker.heartbeat.interval.ms")
    broker_session_timeout_ms = _Setting[int]("broker.session.timeout.ms")
    zookeeper_auth = _Setting["str | None"]("zookeeper.auth")
    zookeeper_connect = _Setting["str | None"]("zookeeper.connect")
    zookeeper_connection_timeout_ms = _Setting["int | None"]("zookeeper.connection.timeout.ms")
    zookeeper_session_timeout_ms = _Setting[int]("zookeeper.session.timeout.ms")
    zookeeper_set_acl = _Setting[bool]("zookeeper.set.acl")
    replica_lag_time_max_ms = _Setting[int]("replica.lag.time.max.ms")
    replica_fetch_backoff_ms = _Setting[int]("replica.fetch.backoff.ms")
    replica_fetch_max_bytes = _Setting[int]("replica.fetch.max.bytes")
    replica_fetch_min_bytes = _Setting[int]("replica.fetch.min.bytes")
    replica_fetch_response_max_bytes = _Setting[int]("replica.fetch.response.max.bytes")
    replica_fetch_wait_max_ms = _Setting[int]("replica.fetch.wait.max.ms")
    replica_selector_class = _Setting["str | None"]("replica.selector.class")
    replica_socket_timeout_ms = _Setting[int]("replica.socket.timeout.ms")
    metrics_listener = _Setting[str]("metrics.listener")
    metrics_max_topics = _Setting[int]("metrics.max.topics")
    slow_request_ms = _Setting[int]("slow.request.ms")
    failed_authentication_delay_ms = _Setting[int]("connection.failed.authentication.delay.ms")
    sasl_server_max_receive_size = _Setting[int]("sasl.server.max.receive.size")
    delegation_token_secret_key = _Setting["str | None"]("delegation.token.secret.key")
    delegation_token_max_lifetime_ms = _Setting[int]("delegation.token.max.lifetime.ms")
    delegation_token_expiry_time_ms = _Setting[int]("delegation.token.expiry.time.ms")
    delegation_token_expiry_check_interval_ms = _Setting[int]("delegation.token.expiry.check.interval.ms")
    producer_id_expiration_ms = _Setting[int]("producer.id.expiration.ms")
    producer_id_expiration_check_interval_ms = _Setting[int]("producer.id.expiration.check.interval.ms")

    def is_for_brokers_only(self, listener: str) -> bool:
        """Whether clients have other listeners."""
        return listener == self.inter_broker_listener_name and len(self.listeners) > 1

    def dynamic_number(self, name: str) -> int | None:
        """A setting that exists at run time only, of this broker or of all; None where it is not set."""
        text = self.dynamic_broker_values.get(name, self.dynamic_default_values.get(name))
        return None if text is None else int(text)

    @property
    def texts(self) -> dict[str, str]:
        """All properties that are set, as text; of several values the one that applies. With secrets."""
        return {**self.static_values, **self.dynamic_default_values, **self.dynamic_broker_values}

    def listener_tls(self, listener: str) -> TlsSettings:
        return tls_settings(self.texts, listener, has_sasl=self.listener_protocols[listener].has_sasl)

    def principal_mapping_rules(self, listener: str) -> str:
        return principal_mapping_rules(self.texts, listener)

    def open_listeners(self) -> list[str]:
        """The listeners that accept clients of other machines without authentication."""
        return [
            listener.name
            for listener in self.listeners
            if not listener.is_loopback and not self._authenticates(listener.name)
        ]

    def _authenticates(self, listener: str) -> bool:
        protocol = self.listener_protocols[listener]
        return protocol.has_sasl or (
            protocol.has_tls and self.listener_tls(listener).client_auth is ClientAuth.REQUIRED
        )

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> BrokerConfig:
        """Raises `ConfigError` for the first property that is unknown, malformed or at odds with another."""
        static = dict(properties)
        # node.id and broker.id are two names of one property.
        for name, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
            if name in static and not (name == "broker.id" and static[name].strip() == "-1"):
                BROKER_CONFIGS[name].parse(static[name])  # an error has the name that was set
                static.setdefault(other, static[name])
        return _build(static, {}, {})

    def with_dynamic(self, default_values: Mapping[str, str], broker_values: Mapping[str, str]) -> BrokerConfig:
        """This configuration with dynamic settings, those of all brokers and those of this one."""
        if default_values == self.dynamic_default_values and broker_values == self.dynamic_broker_values:
            return self
        return _build(self.static_values, dict(default_values), dict(broker_values))


def _build(static: Mapping[str, str], default: Mapping[str, str], broker: Mapping[str, str]) -> BrokerConfig:
    ignored = _ignored_properties(static)
    texts = {**static, **default, **broker}
    values: dict[str, Value] = {
        name: definition.parse(texts[name]) if name in texts else definition.default
        for name, definition in BROKER_CONFIGS.items()
    }
    values["node.id"] = values["broker.id"] = _resolve_node_id(static, values)
    topic_defaults = {name: _topic_default(definition, values) for name, definition in TOPIC_CONFIGS.items()}
    _check_log_defaults(topic_defaults)
    _check_offsets_topic(values)
    _check_zookeeper(values)
    listeners, advertised, dropped = _resolve_listeners(static, values)
    ignored += [
        IgnoredProperty("listeners", f"{listener.name} is a KRaft controller's listener; Odradek has no use for it")
        for listener in dropped
    ]
    protocols = listener_protocols(listeners, parse_protocol_map(cast("str", values["listener.security.protocol.map"])))
    _check_tls(protocols, texts)
    between_brokers = _resolve_inter_broker_listener(listeners, static, values)
    if values["zookeeper.connect"] and protocols[between_brokers].has_sasl:
        broker_credentials(texts, between_brokers)
    return BrokerConfig(
        static_values=static,
        dynamic_default_values=default,
        dynamic_broker_values=broker,
        values=values,
        topic_defaults=topic_defaults,
        listeners=listeners,
        advertised_listeners=advertised,
        listener_protocols=protocols,
        inter_broker_listener_name=between_brokers,
        listener_max_connections=_resolve_of_listeners("max.connections", listeners, texts),
        listener_connection_rates=_resolve_of_listeners("max.connection.creation.rate", listeners, texts),
        max_connections_per_ip_overrides=_resolve_overrides(cast("str", values["max.connections.per.ip.overrides"])),
        sasl_listeners=resolve_sasl_listeners(protocols, texts),
        log_dirs=_resolve_log_dirs(values),
        ignored_properties=tuple(ignored),
    )


def known_names() -> list[str]:
    return [*BROKER_CONFIGS, *KNOWN_PROPERTIES]


# Prefixes of settings that are checked, stored and described, and have no effect.
_WITHOUT_EFFECT = (
    "group.share.",
    "group.streams.",
    "log.flush.start.offset.checkpoint.interval.ms",
    "log.local.retention.",
    "log.preallocate",
    "offsets.load.buffer.size",
    "offsets.topic.compression.codec",
    "replica.high.watermark.checkpoint.interval.ms",
    "request.timeout.ms",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    "transaction.state.log.load.buffer.size",
    "transaction.two.phase.commit.enable",
)


def _ignored_properties(static: Mapping[str, str]) -> list[IgnoredProperty]:
    ignored = []
    for name in static:
        if name in BROKER_CONFIGS:
            if name.startswith(_WITHOUT_EFFECT):
                ignored.append(IgnoredProperty(name, "Kafka setting for a feature that Odradek does not have; ignored"))
            continue
        base = base_name(name)
        if base in _OF_LISTENERS or base in TLS_CONFIGS or is_sasl_property(base):
            continue
        if not is_known(name):
            raise UnknownPropertyError(name, known_names())
        ignored.append(IgnoredProperty(name, "Kafka setting that Odradek does not use; ignored"))
    return ignored


def _resolve_node_id(static: Mapping[str, str], values: Mapping[str, Value]) -> int:
    node_id, broker_id = cast("int | None", values["node.id"]), cast("int", values["broker.id"])
    if node_id is None:
        # No id is set, or broker.id=-1, by which brokers with ZooKeeper were asked to generate one.
        return DEFAULT_NODE_ID
    if "broker.id" in static and broker_id != node_id:
        raise ConfigError("node.id", node_id, f"must be the same as broker.id, which is {broker_id}")
    return node_id


def _resolve_listeners(
    static: Mapping[str, str], values: Mapping[str, Value]
) -> tuple[tuple[Listener, ...], tuple[Listener, ...], tuple[Listener, ...]]:
    controllers = [name.strip() for name in static.get("controller.listener.names", "").split(",")]
    entries = cast("tuple[str, ...]", values["listeners"])
    listeners, dropped = without_controllers(parse_listeners("listeners", entries), controllers)
    check_listen_addresses(listeners, ",".join(entries))
    advertised_entries = cast("tuple[str, ...] | None", values["advertised.listeners"]) or ()
    advertised, _ = without_controllers(parse_listeners("advertised.listeners", advertised_entries), controllers)
    check_advertised_listeners(advertised, listeners, ",".join(advertised_entries))
    return listeners, advertised, dropped


def _check_tls(protocols: Mapping[str, SecurityProtocol], texts: Mapping[str, str]) -> None:
    for listener, protocol in protocols.items():
        if protocol.has_tls:
            tls_settings(texts, listener, has_sasl=protocol.has_sasl)
            principal_mapping_rules(texts, listener)


def _resolve_inter_broker_listener(
    listeners: tuple[Listener, ...], static: Mapping[str, str], values: Mapping[str, Value]
) -> str:
    chosen = cast("str | None", values["inter.broker.listener.name"])
    names = [listener.name for listener in listeners]
    by_protocol = "security.inter.broker.protocol"
    if by_protocol in static:
        if chosen is not None:
            raise ConfigError(by_protocol, static[by_protocol], "set this or inter.broker.listener.name, not both")
        protocol = cast("str", values[by_protocol])
        if protocol not in names:
            raise ConfigError(by_protocol, protocol, f"must be one of the listeners: {', '.join(names)}")
        return protocol
    if chosen is None:
        return "PLAINTEXT" if "PLAINTEXT" in names else names[0]
    if chosen.upper() not in names:
        raise ConfigError("inter.broker.listener.name", chosen, f"must be one of the listeners: {', '.join(names)}")
    return chosen.upper()


def _resolve_overrides(text: str) -> dict[str, int]:
    """`max.connections.per.ip.overrides`: addresses with their limits, as in `10.0.0.1:100,fd00::1:200`."""
    overrides = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        address, _, limit = entry.rpartition(":")
        if not address or not limit.strip().isdigit():
            raise ConfigError("max.connections.per.ip.overrides", text, "expected address:limit, separated by commas")
        overrides[address.strip()] = int(limit)
    return overrides


def _resolve_of_listeners(setting: str, listeners: tuple[Listener, ...], texts: Mapping[str, str]) -> dict[str, int]:
    """The values of a setting that listeners have of their own."""
    definition = BROKER_CONFIGS[setting]
    names = {listener.name: f"listener.name.{listener.name.lower()}.{setting}" for listener in listeners}
    return {
        listener: cast("int", replace(definition, name=name).parse(texts[name]))
        for listener, name in names.items()
        if name in texts
    }


def _resolve_log_dirs(values: Mapping[str, Value]) -> tuple[str, ...]:
    name = "log.dir" if values["log.dirs"] is None else "log.dirs"
    directories = cast("tuple[str, ...]", values[name])
    if not directories or "" in directories:
        raise ConfigError(name, ",".join(directories), "expected one or more directories, separated by commas")
    return directories


def _topic_default(definition: ConfigDefinition, values: Mapping[str, Value]) -> Value:
    """The first of the broker's properties that is set; hours and minutes become milliseconds."""
    for synonym in definition.synonyms:
        value = values[synonym.name]
        if value is not None:
            scaled = cast("int", value) * synonym.factor if synonym.factor != 1 else value
            # Any negative retention means no limit.
            return max(cast("int", scaled), -1) if definition.name == "retention.ms" else scaled
    return definition.default


def _check_log_defaults(defaults: Mapping[str, Value]) -> None:
    """Kafka's limits on combinations of several properties."""
    for topic_name, property_name, minimum in (
        ("segment.ms", "log.roll.ms", 1),
        ("segment.jitter.ms", "log.roll.jitter.ms", 0),
        ("flush.ms", "log.flush.interval.ms", 0),
    ):
        if (value := cast("int", defaults[topic_name])) < minimum:
            raise ConfigError(property_name, value, f"must be greater than or equal to {minimum}")
    if defaults["retention.ms"] == 0:
        raise ConfigError("log.retention.ms", 0, "must be unlimited (-1) or, greater than or equal to 1")
    minimum, maximum = (cast("int", defaults[f"{which}.compaction.lag.ms"]) for which in ("min", "max"))
    if minimum > maximum:
        raise ConfigError(
            "log.cleaner.min.compaction.lag.ms",
            minimum,
            f"must not be more than log.cleaner.max.compaction.lag.ms, which is {maximum}",
        )


def _check_offsets_topic(values: Mapping[str, Value]) -> None:
    """The offsets topic is created for the first group, so settings that no topic can have are refused at start."""
    name = "offsets.topic.segment.bytes"
    try:
        TOPIC_CONFIGS["segment.bytes"].parse(str(values[name]))
    except ConfigError as problem:
        raise ConfigError(name, values[name], problem.reason) from None


def _check_zookeeper(values: Mapping[str, Value]) -> None:
    """Settings that protect the cluster are refused when they would have no effect."""
    auth = cast("str | None", values["zookeeper.auth"])
    if auth is not None and not re.fullmatch(r"(digest|sasl):[^:]+:.+", auth):
        raise ConfigError("zookeeper.auth", "[hidden]", "expected digest:user:password or sasl:user:password")
    if values["zookeeper.set.acl"] and auth is None:
        raise ConfigError("zookeeper.set.acl", "true", "needs an identity: set zookeeper.auth")
    for store in ("keystore", "truststore"):
        name = f"zookeeper.ssl.{store}.type"
        kind = cast("str | None", values[name])
        if values["zookeeper.ssl.client.enable"] and values[f"zookeeper.ssl.{store}.location"] and kind != "PEM":
            raise ConfigError(name, kind, "stores for ZooKeeper must be PEM files: convert it, and set PEM")
