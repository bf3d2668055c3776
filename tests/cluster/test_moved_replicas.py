"""Replicas move between the log directories of their brokers while brokers die, lose power, follow other leaders and
truncate their logs: nothing is lost, and the replicas are identical.

`ODRADEK_CLUSTER_SEEDS=100-199` runs other seeds.
"""

from collections.abc import Mapping

import pytest

from odradek.protocol.errors import ErrorCode
from tests.cluster.story import Fault, Story
from tests.cluster.test_whole_cluster import VARIABLE
from tests.seeds import chosen_seeds

DIRECTORIES = ("/data", "/more")
PROPERTIES = {"log.dirs": ",".join(DIRECTORIES), "log.segment.delete.delay.ms": "500"}
RATES = ["1000", "20000", None]


class MovingStory(Story):
    def __init__(self, seed: int, properties: Mapping[str, str] | None = None) -> None:
        rate = RATES[seed % len(RATES)]
        throttle = {} if rate is None else {"replica.alter.log.dirs.io.max.bytes.per.second": rate}
        super().__init__(seed, {**PROPERTIES, **throttle, **(properties or {})})
        self.moved = 0

    def _faults(self) -> list[Fault]:
        return [*super()._faults(), (40, self._move)]

    def _move(self) -> None:
        """A replica to the other log directory, or back if it is being moved."""
        member = self._any_ready()
        partitions = [] if member is None else [each for each in member.table if each.is_online]
        if member is None or not partitions:
            return
        partition = self._chance.choice(partitions)
        path = DIRECTORIES[partition.directory.path == DIRECTORIES[0]]
        if partition.move is not None and self._chance.random() < 0.3:
            path = partition.directory.path
        self._note(f"{partition.topic}-{partition.index} of broker {member.node_id} is to move to {path}")
        answer = member.table.moves.request(partition.topic, partition.index, path)
        self.moved += answer is ErrorCode.NONE


def check(seed: int) -> None:
    story = MovingStory(seed)
    result = story.run()
    assert not result.anomalies, "\n".join([f"seed {seed}", *result.anomalies[:20], *result.events])
    assert story.moved


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", chosen_seeds(VARIABLE, range(2, 3)))
def test_nothing_is_lost_when_replicas_move(seed: int) -> None:
    check(seed)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(10))
def test_many_seeds(part: int) -> None:
    """200 seeds, unless others are chosen."""
    for seed in chosen_seeds(VARIABLE, range(1000, 1200))[part::10]:
        check(seed)
