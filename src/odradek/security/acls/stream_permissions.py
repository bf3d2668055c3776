"""What the permissions of a stream add to access control lists: an allow for the topics below its path, and for the
stream itself, whose name there is its path and a colon. Super users and rules that deny come before it. Pure.

Groups and roles of users come from a file of the broker, one in a line: `g:plant = ann, bob` and `r:guest = eve`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from odradek.security.access_expressions import ExpressionError, Identity, parse_expression
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

_USER_PREFIX = "User:"
_GROUP, _ROLE = "g", "r"
_NOBODY: frozenset[str] = frozenset()

OPERATIONS: dict[str, frozenset[Operation]] = {
    "produce": frozenset({Operation.WRITE, Operation.CREATE, Operation.DESCRIBE}),
    "consume": frozenset({Operation.READ, Operation.DESCRIBE}),
    "topic": frozenset({Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE}),
    "admin": frozenset({Operation.ALL, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS, Operation.DESCRIBE}),
    "copy": frozenset(
        {Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS}
    ),
}
"""By permission. `ALL` is asked for by requests that change permissions: no rule for a single operation implies it."""
PERMISSIONS = tuple(OPERATIONS)


class Stream(Protocol):
    @property
    def permissions(self) -> Mapping[str, str]: ...


class Members(NamedTuple):
    """The groups and the roles of each user."""

    groups: Mapping[str, frozenset[str]] = {}
    roles: Mapping[str, frozenset[str]] = {}

    def identity(self, principal: str) -> Identity | None:
        """None for a principal that is no user."""
        if not principal.startswith(_USER_PREFIX):
            return None
        user = principal[len(_USER_PREFIX) :]
        return Identity(user, self.groups.get(user, _NOBODY), self.roles.get(user, _NOBODY))


def parse_members(text: str) -> Members:
    """ValueError names the line that cannot be read."""
    found: dict[str, dict[str, set[str]]] = {_GROUP: {}, _ROLE: {}}
    for number, line in enumerate(text.splitlines(), 1):
        if not (content := line.partition("#")[0].strip()):
            continue
        name, equals, users = content.partition("=")
        kind, colon, group = name.strip().partition(":")
        if not (equals and colon and group) or kind not in found:
            raise ValueError(f"line {number} is not g:GROUP = USER, USER or r:ROLE = USER: {content[:60]!r}")
        for user in filter(None, (each.strip() for each in users.split(","))):
            found[kind].setdefault(user, set()).add(group)
    groups, roles = ({user: frozenset(names) for user, names in found[kind].items()} for kind in (_GROUP, _ROLE))
    return Members(groups, roles)


class StreamPermissions(NamedTuple):
    """All that decides beside the rules: the streams by their paths, and who is in which group."""

    streams: Mapping[str, Stream] = {}
    members: Members = Members()

    def allowing(self, principal: str, operation: Operation, topic: str) -> str | None:
        """The permission of the topic's stream that allows the operation."""
        stream = self.streams.get(topic.rpartition(":")[0]) if self.streams else None
        identity = None if stream is None else self.members.identity(principal)
        if stream is None or identity is None:
            return None
        return next((name for name in _permissions_for(operation) if _allows(stream, name, identity)), None)

    def has_stream_of(self, topic: str) -> bool:
        return bool(self.streams) and topic.rpartition(":")[0] in self.streams

    def allows_any(self, principal: str, operation: Operation) -> bool:
        """Whether a stream allows the operation on its topics."""
        identity = self.members.identity(principal) if self.streams else None
        if identity is None:
            return False
        names = _permissions_for(operation)
        return any(_allows(stream, name, identity) for stream in self.streams.values() for name in names)


def _permissions_for(operation: Operation) -> list[str]:
    return [name for name, operations in OPERATIONS.items() if operation in operations]


def _allows(stream: Stream, permission: str, identity: Identity) -> bool:
    try:
        return parse_expression(stream.permissions.get(permission, "")).allows(identity)
    except ExpressionError:  # of another version: it allows nobody
        return False
