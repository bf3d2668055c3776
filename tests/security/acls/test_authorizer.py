"""The authorizer keeps decisions until the rules change, within a bound."""

import tracemalloc
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from odradek.security.acls import authorizer as module
from odradek.security.acls.authorizer import AclAuthorizer
from odradek.security.acls.bindings import AclBinding, PatternType, Permission
from odradek.security.acls.decisions import AccessRules, Decision, decide
from odradek.security.acls.index import AclDraft, AclIndex
from odradek.security.acls.stream_permissions import parse_members
from odradek.security.authorizer import Operation, Resource, ResourceType
from odradek.security.principals import Principal

READS = AclBinding(ResourceType.TOPIC, "t", PatternType.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW)


class Peer:
    principal = Principal("User", "alice")
    host = "10.0.0.1"
    listener_name = "PLAINTEXT"


class Stream(NamedTuple):
    permissions: Mapping[str, str]


class Lists(NamedTuple):
    acls: AclIndex = AclIndex()
    streams: Mapping[str, Stream] = {}


class Rules:
    """The rules of a cluster, which change."""

    def __init__(self) -> None:
        self.lists = Lists()

    def current(self) -> Lists:
        return self.lists

    def add(self, binding: AclBinding) -> None:
        draft = AclDraft(self.lists.acls)
        draft.add(binding)
        self.lists = self.lists._replace(acls=draft.finish())


def test_a_change_of_rules_takes_effect_at_once() -> None:
    rules = Rules()
    authorizer = AclAuthorizer(rules.current, AccessRules())
    topic = Resource(ResourceType.TOPIC, "t")
    assert not authorizer.allows(Peer(), Operation.READ, topic)
    assert not authorizer.allows_any(Peer(), Operation.READ, ResourceType.TOPIC)
    rules.add(READS)
    assert authorizer.allows(Peer(), Operation.READ, topic)
    assert authorizer.allows_any(Peer(), Operation.READ, ResourceType.TOPIC)
    rules.add(READS._replace(permission=Permission.DENY))
    assert not authorizer.allows(Peer(), Operation.READ, topic)


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The questions that the cache had no answer to."""
    decided: list[object] = []

    def counted(*values: Any) -> Decision:
        decided.append(values)
        return decide(*values)

    monkeypatch.setattr(module, "decide", counted)
    return decided


def test_a_decision_is_made_once(decided: list[object]) -> None:
    rules = Rules()
    rules.add(READS)
    authorizer = AclAuthorizer(rules.current, AccessRules())
    for _ in range(3):
        assert authorizer.allows(Peer(), Operation.READ, Resource(ResourceType.TOPIC, "t"))
    assert len(decided) == 1


def test_decisions_for_thousands_of_hosts_are_kept(decided: list[object]) -> None:
    authorizer = AclAuthorizer(Rules().current, AccessRules())
    for _ in range(2):
        for number in range(4_000):
            peer = Peer()
            peer.host = f"10.0.{number // 250}.{number % 250}"
            for operation in (Operation.READ, Operation.DESCRIBE):
                authorizer.allows(peer, operation, Resource(ResourceType.TOPIC, "t"))
                authorizer.allows(peer, operation, Resource(ResourceType.GROUP, "g"))
    assert len(decided) == 16_000


def cached_names(authorizer: AclAuthorizer) -> list[str | None]:
    return [name for answers in authorizer._known.cache.answers.values() for name in answers]


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHED_DECISIONS", 10)
    authorizer = AclAuthorizer(Rules().current, AccessRules())
    for number in range(100):
        authorizer.allows(Peer(), Operation.READ, Resource(ResourceType.GROUP, f"g{number}"))
        authorizer.allows(Peer(), Operation.READ, Resource(ResourceType.GROUP, "g" * (300 + number)))
        assert len(cached_names(authorizer)) <= 10
    assert all(len(name or "") < 300 for name in cached_names(authorizer))


def test_the_cache_is_bounded_if_each_client_asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHED_ASKERS", 20)
    authorizer = AclAuthorizer(Rules().current, AccessRules())
    for number in range(1_000):
        peer = Peer()
        peer.host = f"10.0.0.{number}"
        authorizer.allows(peer, Operation.READ, Resource(ResourceType.GROUP, "g"))
        authorizer.allows_any(peer, Operation.READ, ResourceType.GROUP)
        assert len(authorizer._known.cache.answers) <= 20


def test_a_decision_on_any_resource_is_not_one_on_a_resource_without_a_name() -> None:
    rules = Rules()
    rules.add(READS)
    authorizer = AclAuthorizer(rules.current, AccessRules())
    assert authorizer.allows_any(Peer(), Operation.READ, ResourceType.TOPIC)
    assert not authorizer.allows(Peer(), Operation.READ, Resource(ResourceType.TOPIC, ""))


def test_a_cached_decision_takes_little_memory() -> None:
    """A client that asks for many names fills the cache."""
    authorizer = AclAuthorizer(Rules().current, AccessRules())
    resources = [Resource(ResourceType.TOPIC, f"none-{number:06}") for number in range(16_000)]
    tracemalloc.start()
    try:
        for resource in resources:
            authorizer.allows(Peer(), Operation.READ, Resource(*resource))
        taken_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(cached_names(authorizer)) == len(resources)
    assert taken_bytes < 100 * len(resources), "besides the names"


def test_permissions_of_streams_take_effect_at_once_and_other_commits_keep_the_cache() -> None:
    rules = Rules()
    authorizer = AclAuthorizer(rules.current, AccessRules())
    topic = Resource(ResourceType.TOPIC, "/plant/pumps:warning")
    assert not authorizer.allows(Peer(), Operation.READ, topic)
    rules.lists = rules.lists._replace(streams={"/plant/pumps": Stream({"consume": "u:alice"})})
    assert authorizer.allows(Peer(), Operation.READ, topic)
    assert not authorizer.allows(Peer(), Operation.WRITE, topic)
    assert authorizer.allows_any(Peer(), Operation.READ, ResourceType.TOPIC)
    cache = authorizer._known.cache
    rules.lists = Lists(*rules.lists)  # a commit of something else
    assert authorizer.allows(Peer(), Operation.READ, topic)
    assert authorizer._known.cache is cache
    rules.add(READS._replace(resource_name="/plant/pumps:warning", permission=Permission.DENY))
    assert not authorizer.allows(Peer(), Operation.READ, topic)


def test_other_members_of_groups_take_effect_at_once() -> None:
    rules = Rules()
    rules.lists = Lists(streams={"/plant/pumps": Stream({"consume": "g:plant"})})
    authorizer = AclAuthorizer(rules.current, AccessRules())
    topic = Resource(ResourceType.TOPIC, "/plant/pumps:warning")
    assert not authorizer.allows(Peer(), Operation.READ, topic)
    authorizer.members = parse_members("g:plant = alice")
    assert authorizer.allows(Peer(), Operation.READ, topic)
