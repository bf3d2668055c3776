"""Kafka broker properties that Odradek does not use: accepted, reported in the log, without effect.

They keep their type and whether they can change at run time, because dynamic settings are checked as Kafka checks them.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

from odradek.configuration.config_types import ConfigError, ConfigType, UpdateMode


class KnownProperty(NamedTuple):
    type: ConfigType
    update_mode: UpdateMode


# Properties of Kafka 4.3, by type and update mode.
_CURRENT = """
BOOLEAN read-only
    controlled.shutdown.enable controller.quorum.auto.join.enable
    remote.log.storage.system.enable sasl.oauthbearer.assertion.claim.jti.include ssl.allow.dn.changes
    ssl.allow.san.changes unstable.api.versions.enable unstable.feature.versions.enable
BOOLEAN cluster-wide
    follower.fetch.last.tiered.offset.enable
CLASS read-only
    alter.config.policy.class.name client.quota.callback.class create.topic.policy.class.name
    sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.login.class
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.server.callback.handler.class
CLASS per-broker
    principal.builder.class ssl.engine.factory.class
DOUBLE read-only
    remote.log.manager.task.retry.jitter
DOUBLE per-broker
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter
DOUBLE cluster-wide
    log.cleaner.io.buffer.load.factor
INT read-only
    add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
    alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
    controller.quorum.append.linger.ms controller.quorum.election.backoff.max.ms
    controller.quorum.election.timeout.ms controller.quorum.fetch.max.bytes
    controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms
    controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms controller.socket.timeout.ms
    delete.records.purgatory.purge.interval.requests fetch.purgatory.purge.interval.requests
    group.coordinator.append.linger.ms group.coordinator.background.threads group.coordinator.threads
    group.share.initialize.retry.interval.ms initial.broker.registration.timeout.ms
    internal.metadata.log.segment.bytes internal.metadata.max.batch.size.in.bytes
    kafka.metrics.polling.interval.secs metadata.log.segment.bytes metadata.max.idle.interval.ms
    metrics.num.samples num.replica.alter.log.dirs.threads producer.purgatory.purge.interval.requests
    queued.max.requests remote.log.manager.copy.quota.window.num
    remote.log.manager.copy.quota.window.size.seconds remote.log.manager.fetch.quota.window.num
    remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.thread.pool.size
    remote.log.metadata.custom.metadata.max.bytes remote.log.reader.max.pending.tasks
    replica.socket.receive.buffer.bytes replication.quota.window.num
    replication.quota.window.size.seconds sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.nbf.seconds
    share.coordinator.append.linger.ms
    share.coordinator.cold.partition.snapshot.interval.ms share.coordinator.load.buffer.size
    share.coordinator.snapshot.update.records.per.snapshot share.coordinator.state.topic.compression.codec
    share.coordinator.state.topic.num.partitions share.coordinator.state.topic.prune.interval.ms
    share.coordinator.state.topic.segment.bytes share.coordinator.threads share.coordinator.write.timeout.ms
    share.fetch.purgatory.purge.interval.requests
INT cluster-wide
    background.threads group.coordinator.cached.buffer.max.bytes log.cleaner.io.buffer.size log.cleaner.threads
    num.io.threads num.network.threads num.recovery.threads.per.data.dir
    num.replica.fetchers remote.fetch.max.wait.ms remote.log.manager.copier.thread.pool.size
    remote.log.manager.expiration.thread.pool.size remote.log.manager.follower.thread.pool.size
    remote.log.reader.threads share.coordinator.cached.buffer.max.bytes
LIST read-only
    controller.listener.names controller.quorum.bootstrap.servers controller.quorum.voters early.start.listeners
    kafka.metrics.reporters process.roles
LIST per-broker
    cordoned.log.dirs sasl.kerberos.principal.to.local.rules
LIST cluster-wide
    config.providers metric.reporters
LONG read-only
    controller.performance.always.log.threshold.ms
    controller.performance.sample.period.ms
    internal.metadata.delete.delay.millis
    log.dir.failure.timeout.ms log.initial.task.delay.ms
    metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms metadata.log.segment.ms
    metadata.max.retention.bytes metadata.max.retention.ms metrics.sample.window.ms
    remote.log.index.file.cache.ttl.ms remote.log.manager.task.interval.ms
    remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    server.max.startup.time.ms socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
LONG per-broker
    sasl.kerberos.min.time.before.relogin
LONG cluster-wide
    follower.replication.throttled.rate leader.replication.throttled.rate remote.list.offsets.request.timeout.ms
    remote.log.index.file.cache.total.size.bytes remote.log.manager.copy.max.bytes.per.second
    remote.log.manager.fetch.max.bytes.per.second replica.alter.log.dirs.io.max.bytes.per.second
PASSWORD read-only
    sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.client.credentials.client.secret
SHORT read-only
    share.coordinator.state.topic.min.isr share.coordinator.state.topic.replication.factor
SHORT per-broker
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
STRING read-only
    group.share.persister.class.name metadata.log.dir metrics.recording.level
    remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path
    remote.log.metadata.manager.impl.prefix remote.log.metadata.manager.listener.name
    remote.log.storage.manager.class.name remote.log.storage.manager.class.path
    remote.log.storage.manager.impl.prefix sasl.mechanism.controller.protocol
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.template.file
    sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.scope
    sasl.oauthbearer.token.endpoint.url
    security.providers
STRING per-broker
    sasl.kerberos.kinit.cmd sasl.kerberos.service.name
    ssl.keymanager.algorithm
    ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
"""

# Properties of Kafka 3.x and earlier that Kafka 4 removed.
_FORMER = """
    auto.include.jmx.reporter broker.id.generation.enable
    control.plane.listener.name controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms
    delegation.token.master.key eligible.leader.replicas.enable group.coordinator.new.enable
    inter.broker.protocol.version leader.imbalance.per.broker.percentage log.message.downconversion.enable
    log.message.format.version log.message.timestamp.difference.max.ms offsets.commit.required.acks
    password.encoder.cipher.algorithm password.encoder.iterations password.encoder.key.length
    password.encoder.keyfactory.algorithm password.encoder.old.secret password.encoder.secret
    quota.consumer.default quota.producer.default reserved.broker.max.id
    unstable.metadata.versions.enable zookeeper.clientCnxnSocket
    zookeeper.max.in.flight.requests zookeeper.metadata.migration.enable
    zookeeper.metadata.migration.min.batch.size
    zookeeper.ssl.cipher.suites zookeeper.ssl.crl.enable zookeeper.ssl.enabled.protocols zookeeper.ssl.ocsp.enable
    zookeeper.ssl.protocol zookeeper.ssl.truststore.password
"""

_FORMER_SECRETS = (
    "delegation.token.master.key",
    "password.encoder.old.secret",
    "password.encoder.secret",
    "zookeeper.ssl.truststore.password",
)

# Prefixes of the settings of listeners, plug-ins and security mechanisms; the rest of the name is free.
_PREFIXES = ("listener.name.", "ssl.", "sasl.", "rsm.config.", "rlmm.config.", "config.providers.", "zookeeper.ssl.")
_LISTENER_PREFIX = re.compile(r"listener\.name\.[^.]*\.(.+)")


def _read() -> dict[str, KnownProperty]:
    former = KnownProperty(ConfigType.STRING, UpdateMode.READ_ONLY)
    known = dict.fromkeys(_FORMER.split(), former)
    known |= dict.fromkeys(_FORMER_SECRETS, KnownProperty(ConfigType.PASSWORD, UpdateMode.READ_ONLY))
    kind = former
    for line in _CURRENT.strip().splitlines():
        if line.startswith(" "):
            known |= dict.fromkeys(line.split(), kind)
        else:
            type_name, mode = line.split()
            kind = KnownProperty(ConfigType[type_name], UpdateMode(mode))
    return known


KNOWN_PROPERTIES = _read()


def is_known(name: str) -> bool:
    return name in KNOWN_PROPERTIES or name.startswith(_PREFIXES)


def base_name(name: str) -> str:
    """`listener.name.internal.ssl.keystore.type` is `ssl.keystore.type` for one listener."""
    match = _LISTENER_PREFIX.fullmatch(name)
    return match[1] if match else name


class UnknownPropertyError(ConfigError):
    def __init__(self, name: str, known_names: Collection[str]) -> None:
        super().__init__(name, "", "")
        import difflib  # noqa: PLC0415 - only a mistyped name needs it

        nearest = difflib.get_close_matches(name, known_names, n=1, cutoff=0.6)
        self.args = (f"Unknown property {name}" + (f"; did you mean {nearest[0]}?" if nearest else ""),)
