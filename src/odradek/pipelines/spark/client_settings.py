"""Settings of Kafka's clients under the names that librdkafka has for them: definitions are written in Kafka's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odradek.pipelines.spark.failures import PipelineError

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
# Of the Java client's own machinery; leaving them out changes no result.
JAVA_ONLY = frozenset({
    "buffer.memory", "default.api.timeout.ms", "key.deserializer", "key.serializer",
    "max.block.ms", "max.poll.records", "metric.reporters", "metrics.num.samples", "ssl.keystore.type",
    "ssl.truststore.type", "value.deserializer", "value.serializer",
})  # fmt: skip
JAAS_OPTION = re.compile(r"""(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")


class SettingRefused(PipelineError):
    """A setting that means nothing to librdkafka."""


def librdkafka_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """What Kafka's client is told by these settings, for librdkafka; its own names are left as they are."""
    told: dict[str, str] = {}
    for name, value in settings.items():
        if name == "sasl.jaas.config":
            told |= login(value)
        elif name == "ssl.endpoint.identification.algorithm":
            told[name] = value or "none"
        elif name not in JAVA_ONLY:
            told[RENAMED.get(name, name)] = value
    for key, kind in (("ssl.truststore.location", "ssl.truststore.type"), ("ssl.keystore.location", "")):
        if key in settings and settings.get(kind) != "PEM":
            raise SettingRefused(f"{key}: Java's stores of certificates cannot be read here; give them as PEM")
    return told


def login(jaas: str) -> dict[str, str]:
    """User and password of Java's login configuration, for PLAIN and SCRAM."""
    found = {match[1]: re.sub(r"\\(.)", r"\1", match[2] or match[3] or "") for match in JAAS_OPTION.finditer(jaas)}
    if set(found) != {"username", "password"}:
        raise SettingRefused("sasl.jaas.config: only a username and a password can be used here")
    return {"sasl.username": found["username"], "sasl.password": found["password"]}
