"""A member's way to its share, from any state and to any target: what it gets was free, what it loses it gave back."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.groups.consumer.members import ConsumerMember, MemberState, Partitions
from odradek.coordinator.groups.consumer.reconciliation import Goal, reconcile

ONE, TWO = UUID(int=1), UUID(int=2)
EPOCH, TARGET_EPOCH = 5, 7

Pairs = frozenset[tuple[UUID, int]]
pairs = st.frozensets(st.tuples(st.sampled_from([ONE, TWO]), st.integers(0, 3)))


def by_topic(some: Pairs) -> dict[UUID, frozenset[int]]:
    return {topic: frozenset(index for each, index in some if each == topic) for topic in {each for each, _ in some}}


def with_epochs(some: Pairs) -> dict[UUID, dict[int, int]]:
    return {topic: dict.fromkeys(indexes, EPOCH) for topic, indexes in by_topic(some).items()}


def flat(partitions: Partitions | dict[UUID, dict[int, int]] | object) -> Pairs:
    assert isinstance(partitions, dict)
    return frozenset((topic, index) for topic, indexes in partitions.items() for index in indexes)


@st.composite
def members(draw: st.DrawFn) -> ConsumerMember:
    assigned = draw(pairs)
    state = draw(st.sampled_from([each for each in MemberState if each is not MemberState.UNKNOWN]))
    pending = draw(pairs) - assigned if state is MemberState.UNREVOKED_PARTITIONS else frozenset()
    return ConsumerMember(
        member_id="a",
        epoch=draw(st.sampled_from([EPOCH, TARGET_EPOCH])),
        state=state,
        assigned=with_epochs(assigned),
        pending_revocation=with_epochs(pending),
    )


@given(members(), pairs, pairs, st.sets(st.sampled_from([ONE, TWO])), st.none() | pairs, st.booleans())
def test_nothing_is_taken_from_others_and_nothing_is_lost_on_the_way(
    member: ConsumerMember,
    target: Pairs,
    others: Pairs,
    subscribed: set[UUID],
    owned: Pairs | None,
    has_changed: bool,
) -> None:
    mine = flat(member.assigned) | flat(member.pending_revocation)
    others -= mine
    goal = Goal(
        TARGET_EPOCH,
        by_topic(target),
        subscribed,
        lambda topic, index: (topic, index) in others | mine,
        has_changed,
        None if owned is None else by_topic(owned),
    )
    after = reconcile(member, goal)
    assigned, pending = flat(after.assigned), flat(after.pending_revocation)
    assert not assigned & others
    assert not assigned & pending
    assert assigned - flat(member.assigned) <= target, "only the target gives"
    kept_back = mine - assigned - pending
    assert owned is not None or not kept_back, "who says nothing may have it still"
    assert not kept_back & (owned or frozenset()) or after is member, "what it says that it has is not given away"
    if after.epoch != member.epoch:
        assert after.epoch == TARGET_EPOCH
        assert after.state is not MemberState.UNREVOKED_PARTITIONS
    if pending != flat(member.pending_revocation) and pending:
        assert after.state is MemberState.UNREVOKED_PARTITIONS
    assert all(epoch in (EPOCH, TARGET_EPOCH) for epochs in after.assigned.values() for epoch in epochs.values())


@given(members(), pairs)
def test_a_member_that_follows_its_assignments_has_its_target_in_three_steps(
    member: ConsumerMember, target: Pairs
) -> None:
    member = replace(member, epoch=EPOCH)  # in the epoch of its target it would have got the target before
    for _ in range(3):
        owned = by_topic(flat(member.assigned))
        member = reconcile(member, Goal(TARGET_EPOCH, by_topic(target), {ONE, TWO}, lambda *_: False, False, owned))
    assert (flat(member.assigned), member.epoch, member.state) == (target, TARGET_EPOCH, MemberState.STABLE)


def test_what_is_not_free_is_waited_for() -> None:
    member = ConsumerMember(member_id="a", epoch=EPOCH, assigned=with_epochs(frozenset({(ONE, 0)})))
    target = by_topic(frozenset({(ONE, 0), (ONE, 1), (TWO, 0)}))
    goal = Goal(TARGET_EPOCH, target, {ONE, TWO}, lambda topic, _: topic == TWO, False, None)
    waiting = reconcile(member, goal)
    assert waiting.state is MemberState.UNRELEASED_PARTITIONS
    assert waiting.assigned == {ONE: {0: EPOCH, 1: TARGET_EPOCH}}
    done = reconcile(waiting, goal._replace(is_owned=lambda *_: False))
    assert (done.state, done.assigned[TWO]) == (MemberState.STABLE, {0: TARGET_EPOCH})


def test_an_unknown_state_makes_the_member_rejoin() -> None:
    member = replace(ConsumerMember(member_id="a", epoch=EPOCH), state=MemberState(99))
    assert member.state is MemberState.UNKNOWN
    goal = Goal(TARGET_EPOCH, {ONE: frozenset({0})}, {ONE}, lambda *_: False, False, {})
    assert reconcile(member, goal).assigned == {ONE: {0: TARGET_EPOCH}}
