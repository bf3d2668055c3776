"""Access control lists as values: a binding is one rule, a filter selects bindings. Codes and matching are Kafka's."""

from __future__ import annotations

import enum
from typing import NamedTuple

from odradek.security.authorizer import Operation, ResourceType

WILDCARD = "*"  # the name of every resource, or every host
EVERYONE = "User:*"


class PatternType(enum.IntEnum):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(enum.IntEnum):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class AclBinding(NamedTuple):
    """The principal may, or may not, perform the operation on the resources of the pattern from the host."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission


class AclFilter(NamedTuple):
    """None and ANY match everything. MATCH finds the patterns that apply to the resource name: the literal name, the
    wildcard and the prefixes of it."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, binding: AclBinding) -> bool:
        return self._matches_entry(binding) and self._matches_pattern(binding)

    def _matches_entry(self, binding: AclBinding) -> bool:
        return (
            self.principal in (None, binding.principal)
            and self.host in (None, binding.host)
            and self.operation in (Operation.ANY, binding.operation)
            and self.permission in (Permission.ANY, binding.permission)
        )

    def _matches_pattern(self, binding: AclBinding) -> bool:
        if self.resource_type not in (ResourceType.ANY, binding.resource_type):
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, binding.pattern_type):
            return False
        name = self.resource_name
        if name is None:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return name == binding.resource_name
        if binding.pattern_type is PatternType.LITERAL:
            return binding.resource_name in (name, WILDCARD)
        return name.startswith(binding.resource_name)
