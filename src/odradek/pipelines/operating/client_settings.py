"""Translates Kafka client settings, as definitions contain them, to librdkafka's names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
# Settings of the Java client's internals; they do not affect results and are dropped.
JAVA_ONLY = frozenset({
    "buffer.memory", "default.api.timeout.ms", "key.deserializer", "key.serializer",
    "max.block.ms", "max.poll.records", "metric.reporters", "metrics.num.samples", "ssl.cipher.suites",
    "ssl.enabled.protocols", "ssl.engine.factory.class", "ssl.keymanager.algorithm", "ssl.keystore.type",
    "ssl.protocol", "ssl.provider", "ssl.secure.random.implementation", "ssl.trustmanager.algorithm",
    "ssl.truststore.type", "value.deserializer", "value.serializer",
})  # fmt: skip
KEY_STORE, TRUST_STORE = "ssl.keystore.location", "ssl.truststore.location"
JAAS_OPTION = re.compile(r"""(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")


class UntranslatableSetting(ValueError):
    """A setting that cannot be translated for librdkafka."""


def translate_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings for librdkafka; names that librdkafka itself knows are kept."""
    translated: dict[str, str] = {}
    for name, value in settings.items():
        if name == "sasl.jaas.config":
            translated |= login(value)
        elif name == "ssl.endpoint.identification.algorithm":
            translated[name] = value or "none"
        elif name == KEY_STORE:
            translated |= own_key(value, settings.get("ssl.keystore.type"))
        elif name not in JAVA_ONLY:
            translated[RENAMED.get(name, name)] = value
    if TRUST_STORE in settings and settings.get("ssl.truststore.type") != "PEM":
        raise UntranslatableSetting(
            f"{TRUST_STORE}: Java stores are not supported by the Python connector; use PEM files"
        )
    return translated


def own_key(location: str, kind: str | None) -> dict[str, str]:
    """The file with the client's key and certificates: PEM, or PKCS12 with `ssl.keystore.password`."""
    if kind == "PEM":
        return {"ssl.certificate.location": location, "ssl.key.location": location}
    if kind == "PKCS12":
        return {KEY_STORE: location}
    raise UntranslatableSetting(
        f"{KEY_STORE}: Java key stores are not supported by the Python connector; use PEM or PKCS12"
    )


def login(jaas: str) -> dict[str, str]:
    """The username and password in a Java login configuration for PLAIN or SCRAM."""
    found = {match[1]: re.sub(r"\\(.)", r"\1", match[2] or match[3] or "") for match in JAAS_OPTION.finditer(jaas)}
    if set(found) != {"username", "password"}:
        raise UntranslatableSetting("sasl.jaas.config: the Python connector supports username and password only")
    return {"sasl.username": found["username"], "sasl.password": found["password"]}
