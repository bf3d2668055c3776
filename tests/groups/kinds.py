"""The kinds of members that there are: a client, a protocol, an assignor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.groups.members.member_settings import CLASSIC, CONSUMER
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
    def settings(self) -> dict[str, Any]:
        return {"protocol": self.protocol, "assignor": self.assignor}

    def __str__(self) -> str:
        return f"{self.library}-{self.protocol}-{self.assignor}"


def parameters(kinds: Iterable[Kind], in_every_run: Iterable[str], in_more: Iterable[str]) -> list[Any]:
    """Each kind as a parameter of a test, marked with the toolchain that it needs.

    `make test` runs the kinds whose names are `in_every_run`, `make more` those `in_more`, `make soak` the others.
    """
    kinds = list(kinds)
    suites = {name: [pytest.mark.more] for name in in_more} | {name: [] for name in in_every_run}
    assert suites.keys() <= {str(kind) for kind in kinds}
    return [
        pytest.param(
            kind, id=str(kind), marks=[*MARKS.get(kind.library, []), *suites.get(str(kind), [pytest.mark.soak])]
        )
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
# Of each client and protocol the one with the most rounds: incremental where it has that, range otherwise.
EACH_CLIENT = [*INCREMENTAL, *(kind for kind in WITH_RANGE if kind.library == "aiokafka")]


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
