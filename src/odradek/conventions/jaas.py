"""Values of `sasl.jaas.config`: `LoginModule required option="value" …;`. They are read as text; no class is loaded.

Texts in quotes have the escapes of Java. Comments are skipped, as Kafka does. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

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
