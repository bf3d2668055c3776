"""Which brokers hold which partition."""

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.controller.decisions.placement import UsableBroker, check_assignment, place_replicas
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal


def in_racks(racks: Mapping[int, str | None]) -> list[UsableBroker]:
    return [UsableBroker(broker, rack) for broker, rack in racks.items()]


def never_random(bound: int) -> int:
    return 0


def test_one_broker_holds_everything() -> None:
    assert place_replicas([UsableBroker(7)], 3, 1, never_random) == [(7,), (7,), (7,)]


def test_leaders_go_round_the_brokers() -> None:
    assert place_replicas(in_racks({0: None, 1: None, 2: None}), 3, 2, never_random) == [(0, 1), (1, 2), (2, 0)]


def test_replicas_are_striped_over_racks() -> None:
    racks: dict[int, str | None] = {0: "a", 1: "a", 2: "b", 3: "b"}
    assert place_replicas(in_racks(racks), 4, 2, never_random) == [(0, 2), (3, 1), (0, 2), (3, 1)]


@given(
    st.dictionaries(st.integers(0, 20), st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=9),
    st.integers(1, 30),
    st.data(),
)
def test_every_placement_is_legal_and_spreads_over_racks(
    racks: dict[int, str | None], partition_count: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    placed = place_replicas(
        in_racks(racks), partition_count, factor, lambda bound: data.draw(st.integers(0, bound - 1))
    )
    assert not isinstance(placed, Refusal)
    assert len(placed) == partition_count
    for replicas in placed:
        assert check_assignment(replicas, racks, factor) is None
        per_rack = Counter(racks[broker] for broker in replicas)
        room = Counter(racks.values())
        # No rack gets a second replica while another that has room has none.
        assert max(per_rack.values()) <= 1 + min(per_rack[rack] if room[rack] > per_rack[rack] else 99 for rack in room)


def test_more_replicas_than_brokers_is_refused_in_kafkas_words() -> None:
    assert place_replicas([UsableBroker(0)], 1, 3, never_random) == Refusal(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because "
        "only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
    )


def test_no_replicas_at_all_is_refused() -> None:
    refusal = place_replicas([UsableBroker(0)], 1, 0, never_random)
    assert isinstance(refusal, Refusal)
    assert refusal.error is ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        ((), "includes an empty replica list."),
        ((0, 9), "includes broker 9, but no such broker is registered."),
        ((1, 0, 1), "includes the broker 1 more than once."),
        ((0, 1), "includes a partition with 2 replica(s), but this is not consistent with previous partitions"),
    ],
)
def test_bad_assignments_by_hand_are_refused(replicas: tuple[int, ...], message: str) -> None:
    refusal = check_assignment(replicas, {0: None, 1: None}, 1)
    assert refusal is not None
    assert refusal.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert message in str(refusal.message)


def test_replicas_share_a_machine_only_when_there_is_no_other() -> None:
    brokers = [UsableBroker(node_id, None, machine) for node_id, machine in enumerate("aabbc")]
    placed = place_replicas(brokers, 20, 3, never_random)
    assert not isinstance(placed, Refusal)
    assert all(len({"aabbc"[broker] for broker in replicas}) == 3 for replicas in placed)
    shared = place_replicas(brokers, 20, 4, never_random)
    assert not isinstance(shared, Refusal)
    assert all(len(set(replicas)) == 4 and len({"aabbc"[broker] for broker in replicas}) == 3 for replicas in shared)


def test_another_machine_in_the_rack_of_the_leader_comes_before_the_same_machine_in_another_rack() -> None:
    brokers = [UsableBroker(0, None, "z", False), UsableBroker(1, "a", "x", True)]
    brokers += [UsableBroker(node_id, "a", "z", True) for node_id in (2, 3)]
    placed = place_replicas(brokers, 9, 2, lambda _: 0)
    assert not isinstance(placed, Refusal)
    assert all(1 in replicas for replicas in placed)


@given(
    st.dictionaries(
        st.integers(0, 20),
        st.tuples(st.sampled_from([None, "a", "b"]), st.sampled_from("xyz"), st.booleans()),
        min_size=1,
        max_size=8,
    ),
    st.data(),
)
def test_machines_are_distinct_as_far_as_possible(
    drawn: dict[int, tuple[str | None, str, bool]], data: st.DataObject
) -> None:
    brokers = [UsableBroker(node_id, *each) for node_id, each in drawn.items()]
    factor = data.draw(st.integers(1, len(brokers)))
    placed = place_replicas(brokers, 9, factor, lambda bound: data.draw(st.integers(0, bound - 1)))
    if isinstance(placed, Refusal):
        assert not any(broker.is_active for broker in brokers)
        return
    machines = {broker.node_id: broker.machine for broker in brokers}
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert drawn[replicas[0]][2], "the first replica leads, so its broker is active"
        assert len({machines[broker] for broker in replicas}) == min(factor, len(set(machines.values())))
