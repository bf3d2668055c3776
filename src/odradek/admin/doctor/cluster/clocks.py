"""Rules on clocks. Coordinators write internal topics with the time of their broker: a record of the future shows that
the broker's clock is ahead of this one. A clock that is behind cannot be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.doctor.finding import warning
from odradek.conventions.figures import age_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.admin.doctor.cluster.facts import ClusterFacts
    from odradek.admin.doctor.finding import Finding

LARGEST_SKEW_MS = 5_000


def clock_skew(facts: ClusterFacts) -> Iterator[Finding]:
    assert facts.ahead_ms is not None
    found = {place: ahead for place, ahead in facts.ahead_ms.items() if ahead > LARGEST_SKEW_MS}
    if found:
        yield warning(
            "clocks of brokers are ahead of the clock of this machine: retention and time look-ups go wrong",
            [f"leader of {place}: {age_text(ahead)} ahead" for place, ahead in found.items()],
            "Synchronize the clocks of brokers and clients, for example with chrony: chronyc tracking",
        )
