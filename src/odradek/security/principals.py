"""Who is asking. Every connection has a principal; before authentication exists, all are anonymous users."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    type: str = "User"
    name: str = "ANONYMOUS"

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal()
