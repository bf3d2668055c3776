"""Rules on transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.doctor.finding import problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.admin.doctor.cluster.facts import ClusterFacts
    from odradek.admin.doctor.finding import Finding


def hanging(facts: ClusterFacts) -> Iterator[Finding]:
    assert facts.hanging is not None
    if facts.hanging:
        first = facts.hanging[0]
        yield problem(
            "transactions hang: no coordinator will end them, and read_committed consumers stop at them",
            [
                f"{each.topic}-{each.partition} from offset {each.start_offset}, producer {each.producer_id}"
                for each in facts.hanging
            ],
            f"odradek transaction abort {first.topic} --partition {first.partition} "
            f"--start-offset {first.start_offset}",
        )
