"""Settings of Kafka's Java clients under librdkafka's names. Stores and certificates are not among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.jaas import PLAIN_MODULE, SCRAM_MODULE, JaasError, parse_jaas

if TYPE_CHECKING:
    from collections.abc import Mapping

JAAS = "sasl.jaas.config"
RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "sasl.mechanism": "sasl.mechanisms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
# Settings of the Java clients' internals, which librdkafka refuses; they do not affect results.
JAVA_ONLY = frozenset({
    "auto.include.jmx.reporter", "buffer.memory", "compression.gzip.level", "compression.lz4.level",
    "compression.zstd.level", "config.providers", "default.api.timeout.ms", "exclude.internal.topics",
    "interceptor.classes", "internal.leave.group.on.close", "key.deserializer", "key.serializer",
    "leave.group.on.close", "max.block.ms", "max.poll.records", "metadata.max.idle.ms",
    "metric.reporters", "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms", "partitioner.class", "partitioner.ignore.keys", "sasl.login.class",
    "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms", "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter", "sasl.login.retry.backoff.max.ms", "sasl.login.retry.backoff.ms",
    "security.providers", "socket.connection.setup.timeout.max.ms", "ssl.enabled.protocols",
    "ssl.engine.factory.class", "ssl.keymanager.algorithm", "ssl.protocol", "ssl.provider",
    "ssl.secure.random.implementation", "ssl.trustmanager.algorithm", "throw.on.fetch.stable.offset.unsupported",
    "value.deserializer", "value.serializer",
})  # fmt: skip


class UntranslatableSetting(ValueError):
    """A setting that librdkafka has no counterpart for."""


def librdkafka_names(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings for librdkafka; names that it knows itself are kept."""
    translated: dict[str, str] = {}
    for name, value in settings.items():
        if name == JAAS:
            translated |= login(value)
        elif name == "ssl.endpoint.identification.algorithm":
            translated[name] = value or "none"
        elif name not in JAVA_ONLY:
            translated[RENAMED.get(name, name)] = value
    return translated


def login(line: str) -> dict[str, str]:
    """User and password of a Java login configuration for PLAIN or SCRAM."""
    try:
        module = parse_jaas(line)
    except JaasError as problem:
        raise UntranslatableSetting(f"{JAAS}: {problem}") from None
    user, password = module.options.get("username"), module.options.get("password")
    if module.name not in (PLAIN_MODULE, SCRAM_MODULE) or not user or password is None:
        raise UntranslatableSetting(
            f'{JAAS}: the client library supports {PLAIN_MODULE} and {SCRAM_MODULE} with username="…" password="…" only'
        )
    if module.options.get("tokenauth", "").lower() == "true":
        raise UntranslatableSetting(f"{JAAS}: the client library does not log in with delegation tokens (tokenauth)")
    return {"sasl.username": user, "sasl.password": password}
