"""The composition of a broker's replication: second looks at in-sync sets after refusals, and what follows metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.replica.replication import Replication
from tests.simulation.simulated_clock import pass_time
from tests.simulation.simulated_host import Simulation

if TYPE_CHECKING:
    from odradek.host.clock import Clock

PAUSE_MS = 500.0


class Proposer:
    """Records when it is asked to look at its in-sync set."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.looks_ms: list[float] = []

    def check_in_sync(self) -> None:
        self.looks_ms.append(self._clock.monotonic_ms())


def test_each_refused_proposal_gets_a_second_look_when_its_own_pause_has_ended() -> None:
    simulation = Simulation(1)
    clock = simulation.host.clock
    unused: Any = None
    replication = Replication(0, unused, unused, unused, clock)
    first, second = Proposer(clock), Proposer(clock)
    began_ms = clock.monotonic_ms()

    def refuse(proposer: Any) -> None:
        replication.check_in_sync_after(PAUSE_MS, proposer)

    refuse(first)
    clock.call_after(400.0, lambda: refuse(second))
    simulation.loop.run_until_complete(pass_time(2))
    replication.stop()
    simulation.close()
    assert [look - began_ms >= PAUSE_MS for look in first.looks_ms] == [True]
    assert [look - began_ms >= 400.0 + PAUSE_MS for look in second.looks_ms] == [True]
