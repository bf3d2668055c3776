"""The outcomes of one step of a SASL exchange, and the interface of a mechanism. Pure.

A mechanism gets the client's bytes and returns an outcome; after a success or a failure it is used no more. The text of
a failure reaches the client, so it says nothing about users and passwords; the reason is for the broker's log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


@dataclass(frozen=True, slots=True)
class Challenge:
    """The exchange continues: the client gets these bytes and answers."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Authenticated:
    """`expires_ms` is the wall-clock time at which the credential ends, None for one that does not end by itself."""

    user: str
    data: bytes = b""
    expires_ms: int | None = None
    is_token: bool = False
    principal_type: str = "User"


@dataclass(frozen=True, slots=True)
class Failed:
    """`message` is None for the text that names the mechanism only, as Kafka has it for wrong credentials."""

    reason: str
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Deferred:
    """A credential must be computed on a worker thread: await `compute()`, then evaluate the same bytes again."""

    compute: Callable[[], Awaitable[None]]


Outcome = Challenge | Authenticated | Failed | Deferred


class Mechanism(Protocol):
    """The server's side of one exchange."""

    def evaluate(self, response: bytes) -> Outcome: ...
