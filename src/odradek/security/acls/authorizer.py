"""The authorizer of a broker with access control lists: decisions on the current index, kept in a bounded cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.security.acls.decisions import Actor, decide, decide_for_any

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.security.acls.decisions import AccessRules
    from odradek.security.acls.index import AclIndex
    from odradek.security.authorizer import Client, Operation, Resource, ResourceType

    _Asker = tuple[str, str, str, Operation, ResourceType]
    _Answers = dict[str | None, bool]

CACHED_DECISIONS = 20_000  # about 2 MB, or 7 MB if all names are as long as they may be
CACHED_ASKERS = 16_000  # about 5 MB: each has a dictionary of its own
LONGEST_CACHED_NAME = 255
_ANY_NAME = None


class _Cache:
    """Decisions by name for each client, operation and type of resource: a decision takes little more than its name.
    The count is not exact if several threads add decisions at the same time."""

    __slots__ = ("answers", "count")

    def __init__(self) -> None:
        self.answers: dict[_Asker, _Answers] = {}
        self.count = 0

    def keep(self, asker: _Asker, name: str | None, is_allowed: bool) -> None:
        if self.count >= CACHED_DECISIONS or (asker not in self.answers and len(self.answers) >= CACHED_ASKERS):
            self.answers.clear()
            self.count = 0
        answers = self.answers.get(asker)
        if answers is None:
            answers = self.answers.setdefault(asker, {})
        answers[name] = is_allowed
        self.count += 1


class AclAuthorizer:
    """Each index has a cache of its own: a commit that changes access control lists makes another index. Worker threads
    ask too, so that an answer is kept in the cache of the index on which it was decided. A cache is emptied when it is
    full: a client that asks for many names cannot take more memory. Names and askers are bounded separately, so that
    thousands of clients with a few names each have room too."""

    uses_acls = True

    def __init__(self, current: Callable[[], AclIndex], rules: AccessRules) -> None:
        self._current = current
        self._rules = rules
        self._cached: tuple[AclIndex, _Cache] = (current(), _Cache())

    def allows(self, client: Client, operation: Operation, resource: Resource) -> bool:
        index, cache = self._cached
        if self._current() is not index:
            index, cache = self._cached = (self._current(), _Cache())
        principal = client.principal
        resource_type, name = resource
        # Not the principal itself: its hash is computed in Python.
        asker = principal.name, principal.type, client.host, operation, resource_type
        try:
            return cache.answers[asker][name]
        except KeyError:
            actor = Actor(str(principal), client.host)
            is_allowed = decide(index, self._rules, actor, operation, resource_type, name).is_allowed
            if len(name) <= LONGEST_CACHED_NAME:
                cache.keep(asker, name, is_allowed)
            return is_allowed

    def allows_any(self, client: Client, operation: Operation, resource_type: ResourceType) -> bool:
        index, cache = self._cached
        if self._current() is not index:
            index, cache = self._cached = (self._current(), _Cache())
        principal = client.principal
        asker = principal.name, principal.type, client.host, operation, resource_type
        try:
            return cache.answers[asker][_ANY_NAME]
        except KeyError:
            actor = Actor(str(principal), client.host)
            is_allowed = decide_for_any(index, self._rules, actor, operation, resource_type)
            cache.keep(asker, _ANY_NAME, is_allowed)
            return is_allowed
