"""An index answers as a scan of all rules would, whatever was added and removed before."""

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.security.acls.bindings import AclBinding, AclFilter, PatternType, Permission
from odradek.security.acls.decisions import AccessRules, Actor, decide
from odradek.security.acls.index import AclDraft, AclIndex
from odradek.security.authorizer import Operation, ResourceType
from tests.example_counts import examples

NAMES = ["a", "ab", "abc", "b", "*"]
bindings = st.builds(
    AclBinding,
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    st.sampled_from(NAMES),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(["User:alice", "User:bob", "User:*"]),
    st.sampled_from(["*", "h"]),
    st.sampled_from([Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL]),
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)
steps = st.lists(st.tuples(st.booleans(), bindings), max_size=25)


def index_after(changes: list[tuple[bool, AclBinding]]) -> tuple[AclIndex, dict[AclBinding, None]]:
    """The index after each change was a commit of its own, and the rules that must be in it."""
    index, present = AclIndex(), dict[AclBinding, None]()
    for is_addition, binding in changes:
        draft = AclDraft(index)
        if is_addition:
            assert draft.add(binding) is (binding not in present)
            present[binding] = None
        else:
            assert draft.remove(binding) is (binding in present)
            present.pop(binding, None)
        index = draft.finish()
    return index, present


def applies(binding: AclBinding, resource_type: ResourceType, name: str) -> bool:
    return AclFilter(resource_type, name, PatternType.MATCH).matches(binding)


@settings(max_examples=examples(75), deadline=None)
@given(steps, st.sampled_from([*NAMES, "abcd", "z"]))
def test_the_index_finds_the_rules_that_a_scan_finds(changes: list[tuple[bool, AclBinding]], name: str) -> None:
    index, present = index_after(changes)
    assert index.bindings == present
    found = {
        binding
        for by_principal in index.rules_for(ResourceType.TOPIC, name)
        for rules in by_principal.values()
        for binding in rules
    }
    assert found == {binding for binding in present if applies(binding, ResourceType.TOPIC, name)}
    for principal in ("User:alice", "User:*"):
        owned = {each for each in present if each[0] is ResourceType.TOPIC and each.principal == principal}
        assert set(index.rules_of(ResourceType.TOPIC, principal)) == owned


@settings(max_examples=examples(75), deadline=None)
@given(steps, bindings, bindings)
def test_removing_a_rule_leaves_every_denial_of_another(
    changes: list[tuple[bool, AclBinding]], denial: AclBinding, removed: AclBinding
) -> None:
    """CVE-2024-27309: an authorizer forgot rules of a resource when another of its rules was removed."""
    denial = denial._replace(permission=Permission.DENY)
    if removed == denial:
        return
    index, _ = index_after([*changes, (True, removed), (True, denial), (False, removed)])
    operation = Operation.READ if denial.operation is Operation.ALL else denial.operation
    actor = Actor("User:alice" if denial.principal == "User:*" else denial.principal, "h")
    name = denial.resource_name
    assert not decide(index, AccessRules(), actor, operation, denial.resource_type, name).is_allowed


@settings(max_examples=50, deadline=None)
@given(steps)
def test_an_earlier_index_does_not_change(changes: list[tuple[bool, AclBinding]]) -> None:
    index, present = index_after(changes)
    draft = AclDraft(index)
    for binding in present:
        draft.remove(binding)
    assert len(draft.finish()) == 0
    assert index == index_after([(True, binding) for binding in present])[0]
    for binding in present:
        rules = index.rules_for(binding.resource_type, binding.resource_name)
        assert any(binding in by_principal.get(binding.principal, ()) for by_principal in rules)
