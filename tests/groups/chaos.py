"""What happens to the members of a group, by a seed: they join, leave, are killed, and are stopped past their session.

The schedule is a shuffled bag, so that every kind of thing happens; whom it happens to is drawn when it happens.
"""

from __future__ import annotations

import collections
import random
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.groups.running_member import RunningMember

BAG = ("join", "join", "join", "leave", "kill", "kill", "stop", "stop")
FEWEST = 3  # that run, whatever happens
MOST = 7


class Chaos:
    """`join(library)` starts a member; `members` are all that ever were."""

    def __init__(self, seed: int, libraries: Sequence[str], join: Callable[[str], RunningMember]) -> None:
        self._random = random.Random(seed)
        self._libraries = list(libraries)
        self._join = join
        self._stopped: list[tuple[float, RunningMember]] = []  # and when it goes on
        self.members: list[RunningMember] = []
        self.fenced: list[RunningMember] = []  # were stopped for longer than their session
        self.done: collections.Counter[str] = collections.Counter()

    def begin(self) -> None:
        """One of each library."""
        for library in self._libraries:
            self.members.append(self._join(library))

    def unleash(self, rounds: int, interval_s: float, stop_s: float) -> None:
        """Empties the bag so many times, one thing every `interval_s`."""
        for _ in range(rounds):
            bag = self._random.sample(BAG, len(BAG))
            for action in bag:
                self._wait(interval_s)
                self._do(action, stop_s)
        while self._stopped:
            self._wait(interval_s)

    def _do(self, action: str, stop_s: float) -> None:
        running = [member for member in self.members if member.is_alive and not member.is_stopped]
        if action == "join" or len(running) <= FEWEST:
            if len(running) < MOST:
                self.members.append(self._join(self._random.choice(self._libraries)))
                self.done["join"] += 1
            return
        victim = self._random.choice(running)
        if action == "leave":
            victim.leave()
        elif action == "kill":
            victim.kill()
        else:
            victim.stop()
            self._stopped.append((time.monotonic() + stop_s, victim))
        self.done[action] += 1

    def _wait(self, seconds: float) -> None:
        """Lets time pass, in which those that were stopped for long enough go on."""
        end = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            for due, member in [each for each in self._stopped if each[0] <= now]:
                self._stopped.remove((due, member))
                member.go_on()
                self.fenced.append(member)
            if now >= end:
                return
            time.sleep(0.05)  # a poll's pause
