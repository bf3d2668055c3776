"""The sessions of users who have logged in, bounded in number and in time. Only the event loop uses them.

A session has an id of 32 random bytes, which is the only part of it that a browser gets. It ends after a time without
a request, after a time that no request extends, by a logout, when its user logs in too often elsewhere, when its place
is needed (`Logins`), or when the user's password is changed or the user is removed.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

MOST_SESSIONS = 100
MOST_SESSIONS_OF_USER = 5

C = TypeVar("C")


class TooManySessions(Exception):
    """As many users are logged in as the console allows."""


@dataclass(slots=True)
class Session(Generic[C]):
    """`content` is what the session keeps for its user; times are in seconds of the clock of its owner."""

    id: str
    user: str
    content: C
    ends_s: float
    idle_ends_s: float
    latest_end_s: float  # which no extension exceeds

    def has_ended(self, now_s: float) -> bool:
        return now_s >= min(self.ends_s, self.idle_ends_s)


class Sessions(Generic[C]):
    def __init__(
        self,
        now_s: Callable[[], float],
        on_end: Callable[[Session[C]], None],
        *,
        idle_timeout_s: float,
        timeout_s: float,
        most: int = MOST_SESSIONS,
        most_of_user: int = MOST_SESSIONS_OF_USER,
    ) -> None:
        self._now_s = now_s
        self._on_end = on_end
        self._idle_timeout_s = idle_timeout_s
        self._timeout_s = timeout_s
        self._most = most
        self._most_of_user = most_of_user
        self._sessions: dict[str, Session[C]] = {}  # those that were used least recently come first

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, user: str, new_content: Callable[[], C], lifetime_s: float | None = None) -> Session[C]:
        """A session with a new id, of at most `lifetime_s`. The user's session that was used least recently ends if the
        user has too many. TooManySessions if others have them."""
        self.end_expired()
        own = [each for each in self._sessions.values() if each.user == user]
        for session in own[: max(len(own) - self._most_of_user + 1, 0)]:
            self.end(session.id)
        if len(self._sessions) >= self._most:
            raise TooManySessions
        now_s = self._now_s()
        length_s = self._timeout_s if lifetime_s is None else min(self._timeout_s, lifetime_s)
        session = Session(
            secrets.token_urlsafe(32),
            user,
            new_content(),
            ends_s=now_s + length_s,
            idle_ends_s=now_s + self._idle_timeout_s,
            latest_end_s=now_s + self._timeout_s,
        )
        self._sessions[session.id] = session
        return session

    def find(self, session_id: str, *, is_use: bool = True) -> Session[C] | None:
        """The session, unless it has ended. `is_use` is false for requests that a page makes by itself."""
        session = self._sessions.get(session_id)
        if session is None:
            return None
        now_s = self._now_s()
        if session.has_ended(now_s):
            self.end(session_id)
            return None
        if is_use:
            session.idle_ends_s = now_s + self._idle_timeout_s
            self._sessions[session_id] = self._sessions.pop(session_id)
        return session

    def extend(self, session_id: str, lifetime_s: float) -> None:
        """The session may last `lifetime_s` from this moment, within the time that no request extends."""
        session = self._sessions.get(session_id)
        if session is not None:
            session.ends_s = min(session.latest_end_s, self._now_s() + lifetime_s)

    def end(self, session_id: str) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._on_end(session)

    def end_least_recent(self, users: Collection[str]) -> bool:
        """End the session of these users that was used least recently; False if they have none."""
        session = next((each for each in self._sessions.values() if each.user in users), None)
        if session is not None:
            self.end(session.id)
        return session is not None

    def end_of_user(self, user: str) -> None:
        """End all sessions of a user, whose credentials have changed."""
        self._end_those(lambda session: session.user == user)

    def end_expired(self) -> None:
        now_s = self._now_s()
        self._end_those(lambda session: session.has_ended(now_s))

    def end_all(self) -> None:
        self._end_those(lambda _session: True)

    def _end_those(self, is_chosen: Callable[[Session[C]], bool]) -> None:
        for session in list(self._sessions.values()):
            if is_chosen(session):
                self.end(session.id)
