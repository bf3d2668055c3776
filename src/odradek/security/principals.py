"""The identity behind a connection. A connection without authentication is the anonymous user's."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    type: str = "User"
    name: str = "ANONYMOUS"

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal()
