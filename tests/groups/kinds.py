"""The kinds of members that there are: a client, a protocol, an assignor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.groups.members.wish import CLASSIC, CONSUMER
from tests.groups.running_member import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterable

MARKS = {"java": [pytest.mark.jvm], "franz-go": [pytest.mark.go]}

CLASSIC_ASSIGNORS: dict[str, tuple[str, ...]] = {
    "aiokafka": ("range", "roundrobin", "sticky"),
    "confluent": ("range", "roundrobin", "cooperative-sticky"),
    "franz-go": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "java": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
}
CONSUMER_ASSIGNORS: dict[str, tuple[str, ...]] = {
    "confluent": ("uniform", "range"),
    "franz-go": ("uniform", "range"),
    "java": ("uniform", "range"),
}
PROTOCOLS = {CLASSIC: CLASSIC_ASSIGNORS, CONSUMER: CONSUMER_ASSIGNORS}


@dataclass(frozen=True, slots=True)
class Kind:
    library: str
    protocol: str
    assignor: str

    @property
    def wishes(self) -> dict[str, Any]:
        return {"protocol": self.protocol, "assignor": self.assignor}


def parameters(kinds: Iterable[Kind]) -> list[Any]:
    """Each kind as a parameter of a test, with its name and what it needs of the machine."""
    return [
        pytest.param(kind, id=f"{kind.library}-{kind.protocol}-{kind.assignor}", marks=MARKS.get(kind.library, []))
        for kind in kinds
    ]


EVERY_KIND = [
    Kind(library, protocol, assignor)
    for protocol, assignors in PROTOCOLS.items()
    for library in COMMANDS
    for assignor in assignors.get(library, ())
]
# Of each client and protocol one with range, and one whose rebalances are incremental, where it has one.
WITH_RANGE = [kind for kind in EVERY_KIND if kind.assignor == "range"]
INCREMENTAL = [kind for kind in EVERY_KIND if kind.assignor in ("cooperative-sticky", "uniform")]


@dataclass(frozen=True, slots=True)
class MixedGroup:
    protocol: str
    assignor: str
    libraries: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.protocol}-{self.assignor}"


# The assignors that all clients of a protocol have.
COMMON_ASSIGNORS = {CLASSIC: ("range", "roundrobin"), CONSUMER: ("range", "uniform")}
MIXED = [
    MixedGroup(protocol, assignor, tuple(assignors))
    for protocol, assignors in PROTOCOLS.items()
    for assignor in COMMON_ASSIGNORS[protocol]
]
