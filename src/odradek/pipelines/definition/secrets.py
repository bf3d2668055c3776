"""Hides the values of secrets in texts that leave the process: messages, logs, status, drawings, stored files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus, unquote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

HIDDEN = "***"
SECRET_NAME = re.compile(r"secret|password|passphrase|token|access[.]?key|jaas|keystore[.]key|key[.]pem", re.IGNORECASE)
LOGIN_OPTION = re.compile(r"""password\s*=\s*["']((?:[^"'\\]|\\.)*)["']""")
URL_PASSWORDS = (
    re.compile(r"(://[^\s/@:]*:)\S+(?=@)"),  # postgresql://user:password@host
    re.compile(r"([?&;][\w.]*(?:password|passphrase|secret|token)=)[^\s&;]+", re.IGNORECASE),
)
CUT = "…"  # where messages shorten a value
LEAST_CUT = 3  # shorter beginnings of a secret occur in any text


def is_secret_name(name: str) -> bool:
    """Whether a setting of a Kafka client or of Spark has a secret value, judged by its name."""
    return SECRET_NAME.search(name) is not None


def secret_values(settings: Mapping[str, str]) -> Iterator[str]:
    """Secrets among settings: passwords, private keys, and the texts in quotes of login modules."""
    for name, value in settings.items():
        if is_secret_name(name) and value:
            yield value
            if "jaas" in name:
                yield from (match[1] for match in LOGIN_OPTION.finditer(value) if match[1])


def hidden(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets: as they are, as they are spelled in URLs and in Python, and cut by `…`."""
    spellings = {spelled for secret in secrets for spelled in spellings_of(secret)}
    for spelled in sorted(spellings, key=len, reverse=True):
        text = text.replace(spelled, HIDDEN)
        text = without_cut(text, spelled)
    return text


def without_url_passwords(text: str) -> str:
    """The text of a database or its driver, which may contain the URL, without the passwords in it."""
    for pattern in URL_PASSWORDS:
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return text


def spellings_of(secret: str) -> Iterable[str]:
    lines = (" ".join(secret.split()), *secret.splitlines())
    ways = (secret, unquote(secret), quote(secret, safe=""), quote_plus(secret), repr(secret)[1:-1])
    return {each for each in (*ways, *lines) if each}


def without_cut(text: str, secret: str) -> str:
    """Hides the beginning of a secret in front of `…`."""
    if CUT not in text:
        return text
    parts = text.split(CUT)
    for index, part in enumerate(parts[:-1]):
        kept = next((size for size in range(len(secret) - 1, LEAST_CUT - 1, -1) if part.endswith(secret[:size])), 0)
        if kept:
            parts[index] = part[: len(part) - kept] + HIDDEN
    return CUT.join(parts)
