"""The ZooKeeper sessions of simulated brokers, which expire when ZooKeeper has not heard of them for long enough."""

from collections.abc import Callable

from tests.cluster.member import Member
from tests.simulation.simulated_zookeeper import SimulatedSession

SESSION_S = 2.0


class Sessions:
    """Each process has a session of its own. That of a process that was killed lasts until it expires, also when
    another process of the same broker has started."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._away_since: dict[SimulatedSession, float] = {}

    def watch(self, member: Member, *, is_reached: bool) -> None:
        """At intervals; `is_reached` says whether ZooKeeper reaches the machine of the broker."""
        session = member.session
        if session is not None and is_reached:
            self._away_since.pop(session, None)
            session.reconnect()
        elif session is not None:
            self._expire_when_away(session)
        member.left_sessions = [each for each in member.left_sessions if not self._expire_when_away(each)]

    def _expire_when_away(self, session: SimulatedSession) -> bool:
        """Whether it has expired."""
        since = self._away_since.setdefault(session, self._now_s())
        session.disconnect()
        has_expired = self._now_s() - since > SESSION_S and bool(session.session_id)
        if has_expired:
            session.expire()
        return has_expired
