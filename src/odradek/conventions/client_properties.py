"""Settings of Kafka's Java clients under librdkafka's names, and the login modules of `sasl.jaas.config`. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from odradek.conventions.dataclass import dataclass

_PACKAGE = "org.apache.kafka.common.security."
PLAIN_MODULE = f"{_PACKAGE}plain.PlainLoginModule"
SCRAM_MODULE = f"{_PACKAGE}scram.ScramLoginModule"
OAUTHBEARER_MODULE = f"{_PACKAGE}oauthbearer.OAuthBearerLoginModule"

_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
    | (?P<quoted>"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*')
    | (?P<sign>[=;])
    | (?P<word>[^\s=;"']+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class JaasError(ValueError):
    """The text says what is wrong with a line, without its values."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """Its text shows no options: they hold passwords."""

    name: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def users(self) -> dict[str, str]:
        """Names and passwords of the options `user_NAME="password"` of PlainLoginModule."""
        return {name.removeprefix("user_"): value for name, value in self.options.items() if name.startswith("user_")}


def parse_jaas(text: str) -> LoginModule:
    """The one login module of a line."""
    tokens = _tokens(text)
    if not tokens:
        raise JaasError("it is empty; expected a login module")
    if len(tokens) < 2 or tokens[1].lower() not in _FLAGS:
        raise JaasError("after the login module, one of required, requisite, sufficient and optional must follow")
    options: dict[str, str] = {}
    position = 2
    while position < len(tokens) and tokens[position] != ";":
        name = tokens[position].removeprefix(_QUOTED)
        if position + 2 >= len(tokens) or tokens[position + 1] != "=" or tokens[position + 2] in ("=", ";"):
            raise JaasError(f'option {position // 3 + 1} has no value; expected name="value"')
        options[name] = tokens[position + 2].removeprefix(_QUOTED)
        position += 3
    if position >= len(tokens):
        raise JaasError("it must end with a semicolon")
    if position + 1 < len(tokens):
        raise JaasError("it has more than one login module; a line is for one mechanism")
    return LoginModule(tokens[0], options)


_QUOTED = "\0"  # before a text in quotes: ";" in quotes is not the end of the line


def _tokens(text: str) -> list[str]:
    if _QUOTED in text:
        raise JaasError("it has a NUL character")
    tokens = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise JaasError("a quotation mark is not closed")
        position = match.end()
        if match["quoted"] is not None:
            unescaped = _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), match["quoted"][1:-1])
            tokens.append(_QUOTED + unescaped)
        elif match.lastgroup is not None:
            tokens.append(match[match.lastgroup])
    return tokens


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
