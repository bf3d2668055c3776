"""Odradek answers drawn sequences of transaction requests as Apache Kafka does.

In `make oracle` Apache Kafka is asked the same again; with `--update` new sequences are drawn and its answers recorded.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.clients.conftest import APACHE_KAFKA
from tests.clients.transaction_sequences import SEQUENCES, Performance, Recorded, Step, read_recorded, write_recorded
from tests.clients.wire.transactions import GROUP, await_coordinator
from tests.wire import WireClient, connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.conftest import Target
    from tests.clients.transaction_sequences import Answer

COUNT = 225
PARTS = 5


@pytest.fixture
def wire(target: Target) -> Iterator[WireClient]:
    with connect(target.bootstrap_servers) as connection:
        yield connection


def perform(wire: WireClient, topic: str, steps: list[Step]) -> list[Answer]:
    name = f"s{uuid.uuid4().hex[:10]}"
    await_coordinator(wire, name)
    await_coordinator(wire, name, GROUP)
    return Performance(wire, name, topic).perform(steps)


@pytest.mark.more(but="odradek-0")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_drawn_sequences_are_answered_as_by_apache_kafka(
    wire: WireClient, topic: str, target: Target, is_recording: bool, part: int
) -> None:
    if is_recording and target.name == APACHE_KAFKA and part == 0:
        record(wire, topic)
    different = []
    for number, (steps, expected) in list(enumerate(read_recorded()))[part::PARTS]:
        answers = perform(wire, topic, steps)
        if answers != expected:
            pairs = zip([*steps, ["describe"]], expected, answers, strict=True)
            different.append((number, next((step, left, right) for step, left, right in pairs if left != right)))
    assert not different


def record(wire: WireClient, topic: str) -> None:
    recorded: list[Recorded] = []

    @settings(
        max_examples=COUNT,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(SEQUENCES)
    def draw(steps: list[Step]) -> None:
        recorded.append(Recorded(steps, perform(wire, topic, steps)))

    draw()
    write_recorded(recorded)
