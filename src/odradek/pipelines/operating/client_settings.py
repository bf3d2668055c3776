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
    "max.block.ms", "max.poll.records", "metric.reporters", "metrics.num.samples", "ssl.keystore.type",
    "ssl.truststore.type", "value.deserializer", "value.serializer",
})  # fmt: skip
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
        elif name not in JAVA_ONLY:
            translated[RENAMED.get(name, name)] = value
    for key, kind in (("ssl.truststore.location", "ssl.truststore.type"), ("ssl.keystore.location", "")):
        if key in settings and settings.get(kind) != "PEM":
            raise UntranslatableSetting(
                f"{key}: Java key stores are not supported by the Python connector; use PEM files"
            )
    return translated


def login(jaas: str) -> dict[str, str]:
    """The username and password in a Java login configuration for PLAIN or SCRAM."""
    found = {match[1]: re.sub(r"\\(.)", r"\1", match[2] or match[3] or "") for match in JAAS_OPTION.finditer(jaas)}
    if set(found) != {"username", "password"}:
        raise UntranslatableSetting("sasl.jaas.config: the Python connector supports username and password only")
    return {"sasl.username": found["username"], "sasl.password": found["password"]}
