"""The authorizer of a broker with access control lists: decisions on the current index, kept in a bounded cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.security.acls.decisions import Actor, decide, decide_for_any

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.security.acls.decisions import AccessRules
    from odradek.security.acls.index import AclIndex
    from odradek.security.authorizer import Client, Operation, Resource, ResourceType

    _Question = tuple[str, str, str, Operation, Resource | ResourceType]
    _Cache = dict[_Question, bool]

CACHED_DECISIONS = 20_000  # about 5 MB, or 15 MB if all names are as long as they may be
LONGEST_CACHED_NAME = 255


class AclAuthorizer:
    """Each index has a cache of its own: a commit that changes access control lists makes another index. Worker threads
    ask too, so that an answer is kept in the cache of the index on which it was decided. A cache is emptied when it is
    full: a client that asks for many names cannot take more memory."""

    uses_acls = True

    def __init__(self, current: Callable[[], AclIndex], rules: AccessRules) -> None:
        self._current = current
        self._rules = rules
        self._cached: tuple[AclIndex, _Cache] = (current(), {})

    def allows(self, client: Client, operation: Operation, resource: Resource) -> bool:
        index, cache = self._cached
        if self._current() is not index:
            index, cache = self._cached = (self._current(), {})
        principal = client.principal
        # Not the principal itself: its hash is computed in Python.
        question = principal.name, principal.type, client.host, operation, resource
        allowed = cache.get(question)
        if allowed is None:
            actor = Actor(str(principal), client.host)
            allowed = decide(index, self._rules, actor, operation, resource.type, resource.name).is_allowed
            if len(resource.name) <= LONGEST_CACHED_NAME:
                _keep(cache, question, allowed)
        return allowed

    def allows_any(self, client: Client, operation: Operation, resource_type: ResourceType) -> bool:
        index, cache = self._cached
        if self._current() is not index:
            index, cache = self._cached = (self._current(), {})
        principal = client.principal
        question = principal.name, principal.type, client.host, operation, resource_type
        allowed = cache.get(question)
        if allowed is None:
            actor = Actor(str(principal), client.host)
            allowed = decide_for_any(index, self._rules, actor, operation, resource_type)
            _keep(cache, question, allowed)
        return allowed


def _keep(cache: _Cache, question: _Question, allowed: bool) -> None:
    if len(cache) >= CACHED_DECISIONS:
        cache.clear()
    cache[question] = allowed
