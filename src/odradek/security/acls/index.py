"""The access control lists of a cluster, immutable, and indexed by what a decision asks for.

A decision looks up the rules of one principal on one resource name: the exact name, each prefix of it for which there
are rules, and the wildcard. It does not scan the other rules. A draft changes an index by copying the parts that
change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from odradek.security.acls.bindings import WILDCARD, AclBinding, PatternType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.security.acls.bindings import AclFilter
    from odradek.security.authorizer import ResourceType

    _Pattern = tuple[ResourceType, PatternType, str]
    _Rules = dict[str, tuple[AclBinding, ...]]  # by principal
    _Owner = tuple[ResourceType, str]  # type of the resources and principal

_LITERAL, _PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
K = TypeVar("K")


class AclIndex:
    __slots__ = ("bindings", "by_owner", "by_pattern", "prefix_lengths")

    def __init__(self) -> None:
        self.bindings: Mapping[AclBinding, None] = {}
        """A set in the order in which the rules were added."""
        self.by_pattern: dict[_Pattern, _Rules] = {}
        self.by_owner: dict[_Owner, tuple[AclBinding, ...]] = {}
        self.prefix_lengths: dict[ResourceType, dict[int, int]] = {}  # how many patterns have prefixes of each length

    def rules_for(self, resource_type: ResourceType, name: str) -> Iterator[Mapping[str, tuple[AclBinding, ...]]]:
        """The rules by principal of each pattern that applies to the name: exact, longest prefix first, wildcard."""
        by_pattern = self.by_pattern
        exact = by_pattern.get((resource_type, _LITERAL, name))
        if exact is not None:
            yield exact
        for length in sorted(self.prefix_lengths.get(resource_type, ()), reverse=True):
            if length <= len(name):
                prefixed = by_pattern.get((resource_type, _PREFIXED, name[:length]))
                if prefixed is not None:
                    yield prefixed
        if name != WILDCARD:
            every = by_pattern.get((resource_type, _LITERAL, WILDCARD))
            if every is not None:
                yield every

    def rules_of(self, resource_type: ResourceType, principal: str) -> tuple[AclBinding, ...]:
        """The rules of one principal on all resources of a type."""
        return self.by_owner.get((resource_type, principal), ())

    def matching(self, acl_filter: AclFilter) -> list[AclBinding]:
        return [binding for binding in self.bindings if acl_filter.matches(binding)]

    def __len__(self) -> int:
        return len(self.bindings)

    def __eq__(self, other: object) -> bool:
        return self.bindings == other.bindings if isinstance(other, AclIndex) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # values that change have no hash

    def __repr__(self) -> str:
        return f"AclIndex({list(self.bindings)!r})"


class AclDraft:
    """Changes to an index. Each map is copied once, and the rules of a pattern only if they change."""

    def __init__(self, index: AclIndex) -> None:
        self._bindings = dict(index.bindings)
        self._by_pattern = dict(index.by_pattern)
        self._by_owner = dict(index.by_owner)
        self._prefix_lengths = {kind: dict(lengths) for kind, lengths in index.prefix_lengths.items()}
        self._own: set[_Pattern] = set()  # the patterns whose rules were copied

    def add(self, binding: AclBinding) -> bool:
        """False if there is an equal rule."""
        if binding in self._bindings:
            return False
        self._bindings[binding] = None
        pattern, owner = _pattern(binding), (binding.resource_type, binding.principal)
        if pattern not in self._by_pattern and binding.pattern_type is _PREFIXED:
            lengths = self._prefix_lengths.setdefault(binding.resource_type, {})
            lengths[len(binding.resource_name)] = lengths.get(len(binding.resource_name), 0) + 1
        rules = self._writable(pattern)
        rules[binding.principal] = (*rules.get(binding.principal, ()), binding)
        self._by_owner[owner] = (*self._by_owner.get(owner, ()), binding)
        return True

    def remove(self, binding: AclBinding) -> bool:
        """False if there is no such rule."""
        if binding not in self._bindings:
            return False
        del self._bindings[binding]
        pattern, owner = _pattern(binding), (binding.resource_type, binding.principal)
        rules = self._writable(pattern)
        _keep_others(rules, binding.principal, binding)
        if not rules:
            del self._by_pattern[pattern]
            self._own.discard(pattern)
            if binding.pattern_type is _PREFIXED:
                self._forget_prefix(binding)
        _keep_others(self._by_owner, owner, binding)
        return True

    def finish(self) -> AclIndex:
        """The draft must not be used afterwards: the index has its maps."""
        index = AclIndex()
        index.bindings = self._bindings
        index.by_pattern = self._by_pattern
        index.by_owner = self._by_owner
        index.prefix_lengths = self._prefix_lengths
        return index

    def _writable(self, pattern: _Pattern) -> _Rules:
        if pattern not in self._own:
            self._own.add(pattern)
            self._by_pattern[pattern] = dict(self._by_pattern.get(pattern, ()))
        return self._by_pattern[pattern]

    def _forget_prefix(self, binding: AclBinding) -> None:
        lengths = self._prefix_lengths[binding.resource_type]
        length = len(binding.resource_name)
        lengths[length] -= 1
        if not lengths[length]:
            del lengths[length]


def _pattern(binding: AclBinding) -> _Pattern:
    return binding.resource_type, binding.pattern_type, binding.resource_name


def _keep_others(rules: dict[K, tuple[AclBinding, ...]], key: K, removed: AclBinding) -> None:
    others = tuple(binding for binding in rules[key] if binding != removed)
    if others:
        rules[key] = others
    else:
        del rules[key]
