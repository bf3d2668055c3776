"""The authorizer of a broker with access control lists: decisions on the current index, kept in a bounded cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.security.acls.decisions import Actor, Decision, decide, decide_for_any

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.security.acls.decisions import AccessRules
    from odradek.security.acls.index import AclIndex
    from odradek.security.authorizer import Client, Operation, Resource, ResourceType
    from odradek.security.principals import Principal

    _Question = tuple[Principal, str, Operation, Resource | ResourceType]

CACHED_DECISIONS = 20_000  # about 5 MB, or 15 MB if all names are as long as they may be
LONGEST_CACHED_NAME = 255


class AclAuthorizer:
    """The cache belongs to one index: a commit that changes access control lists makes another index, which empties it.
    It is emptied as well when it is full, so that a client that asks for many names cannot take more memory."""

    uses_acls = True

    def __init__(self, current: Callable[[], AclIndex], rules: AccessRules) -> None:
        self._current = current
        self._rules = rules
        self._index = current()
        self._cache: dict[_Question, bool] = {}

    def allows(self, client: Client, operation: Operation, resource: Resource) -> bool:
        if self._current() is not self._index:
            self._follow()
        question = client.principal, client.host, operation, resource
        allowed = self._cache.get(question)
        if allowed is None:
            allowed = self.decide(client, operation, resource).is_allowed
            if len(resource.name) <= LONGEST_CACHED_NAME:
                self._keep(question, allowed)
        return allowed

    def allows_any(self, client: Client, operation: Operation, resource_type: ResourceType) -> bool:
        if self._current() is not self._index:
            self._follow()
        question = client.principal, client.host, operation, resource_type
        allowed = self._cache.get(question)
        if allowed is None:
            actor = Actor(str(client.principal), client.host)
            allowed = decide_for_any(self._index, self._rules, actor, operation, resource_type)
            self._keep(question, allowed)
        return allowed

    def decide(self, client: Client, operation: Operation, resource: Resource) -> Decision:
        """The decision with its reason, which is not cached."""
        actor = Actor(str(client.principal), client.host)
        return decide(self._current(), self._rules, actor, operation, resource.type, resource.name)

    def _keep(self, question: _Question, allowed: bool) -> None:
        if len(self._cache) >= CACHED_DECISIONS:
            self._cache.clear()
        self._cache[question] = allowed

    def _follow(self) -> None:
        self._index = self._current()
        self._cache.clear()
