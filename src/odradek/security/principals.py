"""The identity behind a connection. A connection without authentication is the anonymous user's."""

from dataclasses import field

from odradek.conventions.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    """`is_token_authenticated` says how the client proved its identity (KIP-48); it is not part of the identity."""

    type: str = "User"
    name: str = "ANONYMOUS"
    is_token_authenticated: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal()
