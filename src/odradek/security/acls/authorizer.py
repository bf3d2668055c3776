"""The authorizer of a broker with access control lists: decisions on the current index, kept in a bounded cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from odradek.security.acls.decisions import Actor, decide, decide_for_any
from odradek.security.acls.stream_permissions import Members, StreamPermissions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.security.acls.decisions import AccessRules
    from odradek.security.acls.index import AclIndex
    from odradek.security.acls.stream_permissions import Stream
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


class AccessLists(Protocol):
    """The part of the metadata that decides."""

    @property
    def acls(self) -> AclIndex: ...

    @property
    def streams(self) -> Mapping[str, Stream]: ...


class _DecisionState(NamedTuple):
    """What decides, and the answers that it has given."""

    lists: AccessLists
    acls: AclIndex
    permissions: StreamPermissions
    cache: _Cache


class AclAuthorizer:
    """Each state of what decides has a cache of its own: a commit that changes access control lists makes another one.
    Worker threads ask too, so that an answer is kept in the cache of the state on which it was decided. A cache is
    emptied when it is full: a client that asks for many names cannot take more memory. Names and askers are bounded
    separately, so that thousands of clients with a few names each have room too."""

    uses_acls = True

    def __init__(self, current: Callable[[], AccessLists], rules: AccessRules, members: Members | None = None) -> None:
        self.members = members or Members()
        """The groups and roles of users. Others take their place when they change."""
        self._current = current
        self._rules = rules
        self._known = self._refreshed(current(), None)

    def allows(self, client: Client, operation: Operation, resource: Resource) -> bool:
        known = self._known
        if self._current() is not known.lists or self.members is not known.permissions.members:
            known = self._known = self._refreshed(self._current(), known)
        principal = client.principal
        resource_type, name = resource
        # Not the principal itself: its hash is computed in Python.
        asker = principal.name, principal.type, client.host, operation, resource_type
        try:
            return known.cache.answers[asker][name]
        except KeyError:
            actor = Actor(str(principal), client.host)
            decision = decide(known.acls, self._rules, actor, operation, resource_type, name, known.permissions)
            if len(name) <= LONGEST_CACHED_NAME:
                known.cache.keep(asker, name, decision.is_allowed)
            return decision.is_allowed

    def allows_any(self, client: Client, operation: Operation, resource_type: ResourceType) -> bool:
        known = self._known
        if self._current() is not known.lists or self.members is not known.permissions.members:
            known = self._known = self._refreshed(self._current(), known)
        principal = client.principal
        asker = principal.name, principal.type, client.host, operation, resource_type
        try:
            return known.cache.answers[asker][_ANY_NAME]
        except KeyError:
            actor = Actor(str(principal), client.host)
            is_allowed = decide_for_any(known.acls, self._rules, actor, operation, resource_type, known.permissions)
            known.cache.keep(asker, _ANY_NAME, is_allowed)
            return is_allowed

    def _refreshed(self, lists: AccessLists, before: _DecisionState | None) -> _DecisionState:
        """Most commits change nothing that decides: the cache stays."""
        permissions = StreamPermissions(lists.streams, self.members)
        if before is not None and before.acls is lists.acls and _are_same(before.permissions, permissions):
            return before._replace(lists=lists)
        return _DecisionState(lists, lists.acls, permissions, _Cache())


def _are_same(before: StreamPermissions, after: StreamPermissions) -> bool:
    return before.streams is after.streams and before.members is after.members
