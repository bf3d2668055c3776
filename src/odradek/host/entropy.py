"""Randomness: ids of topics, log directories and clusters, and random choices."""

import base64
import secrets
import uuid
from typing import Protocol

# Kafka reserves the zero id for "no id" and 0…01 for the metadata topic.
_RESERVED_UUIDS = frozenset({uuid.UUID(int=0), uuid.UUID(int=1)})


class Entropy(Protocol):
    def uuid(self) -> uuid.UUID:
        """A random id whose base64 form does not begin with a dash: command-line tools would take it for an option."""

    def random_below(self, bound: int) -> int: ...

    def nonce(self) -> str:
        """Unpredictable text of printable characters without a comma, with 128 bits of randomness or more."""


def is_usable_uuid(candidate: uuid.UUID) -> bool:
    return candidate not in _RESERVED_UUIDS and not base64.urlsafe_b64encode(candidate.bytes).startswith(b"-")


class SystemEntropy:
    __slots__ = ()

    def uuid(self) -> uuid.UUID:
        while True:
            candidate = uuid.uuid4()
            if is_usable_uuid(candidate):
                return candidate

    def random_below(self, bound: int) -> int:
        return secrets.randbelow(bound)

    def nonce(self) -> str:
        return secrets.token_urlsafe(24)
