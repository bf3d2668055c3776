"""The controller's decisions are those of Apache Kafka's classes: changes of partitions, and placements."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from odradek.controller.decisions.leader_election import ElectionKind
from odradek.controller.decisions.partition_change import Intention, PartitionRules, change_partition
from odradek.controller.decisions.placement import UsableBroker, place_replicas
from odradek.controller.decisions.reassignment import Reassignment
from odradek.metadata.entities import PartitionImage
from odradek.protocol.refusal import Refusal
from odradek.protocol.sentinels import NO_LEADER
from tests.example_counts import examples
from tests.jvm.json_session import JsonSession

pytestmark = [pytest.mark.more, pytest.mark.jvm, pytest.mark.timeout(600)]
MANY = settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
BROKERS = range(1, 7)


@pytest.fixture(scope="module")
def kafka(jvm: None) -> Iterator[JsonSession]:
    with JsonSession("odradek.ControllerSession") as session:
        yield session


@st.composite
def partitions(draw: st.DrawFn) -> PartitionImage:
    """Partitions that a controller can have made: without a leader only if nobody is in sync, and then with the last
    leader."""
    replicas = draw(st.lists(st.sampled_from(BROKERS), min_size=1, max_size=5, unique=True))
    in_sync = draw(st.lists(st.sampled_from(replicas), unique=True))
    others = [replica for replica in replicas if replica not in in_sync]
    eligible = draw(st.lists(st.sampled_from(others), unique=True)) if others else []
    is_moving = draw(st.booleans()) and len(replicas) > 1
    moving = draw(st.lists(st.sampled_from(replicas), unique=True, max_size=len(replicas) - 1)) if is_moving else []
    cut = draw(st.integers(0, len(moving)))
    last_known = [] if in_sync else [draw(st.sampled_from(replicas))]
    return PartitionImage(
        0,
        tuple(replicas),
        tuple(in_sync),
        draw(st.sampled_from(in_sync)) if in_sync else NO_LEADER,
        draw(st.integers(0, 9)),
        draw(st.integers(0, 9)),
        tuple(moving[:cut]),
        tuple(moving[cut:]),
        tuple(replica for replica in replicas if replica in eligible),
        tuple(last_known),
    )


@st.composite
def intentions(draw: st.DrawFn, partition: PartitionImage) -> tuple[Intention, frozenset[int]]:
    """An intention, and the brokers that have left with it, which cannot lead."""
    election = draw(st.sampled_from(ElectionKind))
    kind = draw(st.sampled_from(["elect", "in sync", "leave", "reassign"]))
    if kind == "in sync":
        members = draw(st.lists(st.sampled_from(partition.replicas), unique=True))
        if partition.leader not in (*members, NO_LEADER):
            members.append(partition.leader)
        return Intention(election=election, in_sync=tuple(members)), frozenset()
    if kind == "leave":
        lost = draw(st.lists(st.sampled_from(partition.replicas), unique=True))
        left = tuple(each for each in partition.in_sync_replicas if each not in lost)
        unclean_shutdowns = tuple(lost) if draw(st.booleans()) else ()
        return Intention(election=election, in_sync=left, unclean_shutdowns=unclean_shutdowns), frozenset(lost)
    if kind == "reassign":
        target = draw(st.lists(st.sampled_from(BROKERS), unique=True, min_size=1, max_size=5))
        return Intention(election=election, reassignment=Reassignment.to(partition.replicas, target)), frozenset()
    return Intention(election=election), frozenset()


@MANY
@given(data=st.data())
def test_partitions_change_as_in_kafka(kafka: JsonSession, data: st.DataObject) -> None:
    partition = data.draw(partitions())
    intention, lost = data.draw(intentions(partition))
    active = data.draw(st.frozensets(st.sampled_from(BROKERS))) - lost
    rules = PartitionRules(min_in_sync=data.draw(st.integers(1, 3)), allows_unclean=False, can_lead=active.__contains__)
    changed = change_partition(partition, intention, rules)
    # Kafka limits the minimum by the replicas of the topic's first partition, before this decision.
    minimum = min(rules.min_in_sync, len((changed or partition).replicas))
    expected = kafka.call({"change": _call(partition, intention, minimum, sorted(active))})
    assert (changed is not None) == expected["changed"]
    if changed is not None:
        # Kafka keeps replicas that a reassignment has removed among the eligible ones; they cannot be elected.
        eligible = [each for each in expected["eligible"] if each in changed.replicas]
        if len(changed.in_sync_replicas) >= minimum:
            eligible = []  # an elected eligible replica may commit alone: Kafka has no others there, because brokers
            # leave one after the other
        assert _describe(changed) == {**expected, "eligible": eligible}


@MANY
@given(data=st.data())
def test_partitions_without_eligible_leaders_change_as_in_kafka(kafka: JsonSession, data: st.DataObject) -> None:
    drawn = data.draw(partitions().filter(lambda each: bool(each.in_sync_replicas)))
    leader = data.draw(st.sampled_from([drawn.leader, NO_LEADER]))
    partition = replace(drawn, leader=leader, eligible_leader_replicas=())
    intention, lost = data.draw(intentions(partition))
    active = data.draw(st.frozensets(st.sampled_from(BROKERS))) - lost
    rules = PartitionRules(
        min_in_sync=data.draw(st.integers(1, 3)),
        allows_unclean=False,
        can_lead=active.__contains__,
        keeps_eligible_leaders=False,
    )
    changed = change_partition(partition, intention, rules)
    call = _call(partition, intention, rules.min_in_sync, sorted(active))
    expected = kafka.call({"change": {**call, "keeps_eligible": False}})
    if expected["changed"] and leader == NO_LEADER != expected["leader"]:
        expected["in_sync"] = [expected["leader"]]  # brokers leave one after the other in Kafka: it has one member then
    assert (changed is not None) == expected["changed"]
    if changed is not None:
        assert _describe(changed) == expected


def _call(partition: PartitionImage, intention: Intention, minimum: int, active: list[int]) -> dict[str, Any]:
    target = intention.reassignment
    return {
        **_describe(partition),
        "active": active,
        "min_in_sync": minimum,
        "election": intention.election.name,
        "target_in_sync": intention.in_sync,
        "keeps_eligible": True,
        "unclean_shutdowns": list(intention.unclean_shutdowns),
        "target": None if target is None else target._asdict(),
    }


def _describe(partition: PartitionImage) -> dict[str, Any]:
    return {
        "changed": True,
        "replicas": list(partition.replicas),
        "in_sync": list(partition.in_sync_replicas),
        "adding": list(partition.adding_replicas),
        "removing": list(partition.removing_replicas),
        "eligible": sorted(partition.eligible_leader_replicas),  # Kafka's order; here it is that of the replicas
        "last_known": list(partition.last_known_eligible_leader_replicas),
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
    }


@MANY
@given(
    racks=st.dictionaries(
        st.integers(0, 20), st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1, max_size=9
    ),
    partition_count=st.integers(1, 40),
    data=st.data(),
)
@example(racks={0: (None, True), 1: (None, True), 2: (None, True)}, partition_count=40, data=None)
def test_replicas_are_placed_as_in_kafka(
    kafka: JsonSession, racks: dict[int, tuple[str | None, bool]], partition_count: int, data: st.DataObject | None
) -> None:
    brokers = [UsableBroker(node_id, rack, None, is_active) for node_id, (rack, is_active) in racks.items()]
    if not any(broker.is_active for broker in brokers):
        return
    # Kafka then starts anew, but skips brokers of racks that it last used in the first round; this placer does not.
    partition_count = min(partition_count, sum(broker.is_active for broker in brokers)) if data else partition_count
    factor = 2 if data is None else data.draw(st.integers(1, len(brokers)))
    question = {
        "brokers": [{"id": each.node_id, "rack": each.rack, "fenced": not each.is_active} for each in brokers],
        "partitions": partition_count,
        "factor": factor,
    }
    placed = place_replicas(brokers, partition_count, factor, lambda _: 0)
    assert not isinstance(placed, Refusal)
    assert [list(each) for each in placed] == kafka.call({"place": question})["placed"]
