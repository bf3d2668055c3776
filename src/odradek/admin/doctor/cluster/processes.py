"""Rules on the processes of brokers, which brokers of Odradek report in their metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.doctor.finding import warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.admin.doctor.cluster.facts import ClusterFacts
    from odradek.admin.doctor.finding import Finding

FEWEST_FILES = 4_096
MOST_USED_RATIO = 0.8


def open_files(facts: ClusterFacts) -> Iterator[Finding]:
    assert facts.open_files is not None
    found = {
        broker_id: (used, limit)
        for broker_id, (used, limit) in facts.open_files.items()
        if limit < FEWEST_FILES or used > MOST_USED_RATIO * limit
    }
    if found:
        yield warning(
            "brokers may open few files more: each connection and each segment in use takes one",
            [f"broker {broker_id}: {used:,} of {limit:,} are open" for broker_id, (used, limit) in found.items()],
            "Raise the limit and restart the broker: LimitNOFILE=100000 in its systemd unit, or ulimit -n 100000",
        )
