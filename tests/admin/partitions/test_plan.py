"""Plans of reassignments: even, on the allowed brokers, with few copies, over racks and machines; and their files."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.admin.cluster_state import PartitionState
from odradek.admin.partitions import Move, Place, plan_moves, read_plan_file
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from pathlib import Path


def partitions(*replicas: tuple[int, ...]) -> list[PartitionState]:
    return [PartitionState("t", index, each[0], each, each) for index, each in enumerate(replicas)]


def places(*brokers: int, rack: dict[int, str] | None = None) -> dict[int, Place]:
    return {broker: Place((rack or {}).get(broker), f"host-{broker}") for broker in brokers}


def after(moves: list[Move]) -> dict[int, tuple[int, ...]]:
    return {move.partition.index: move.after for move in moves}


def test_an_even_topic_stays_as_it_is() -> None:
    assert plan_moves(partitions((1, 2), (2, 3), (3, 1)), places(1, 2, 3)) == []


def test_a_new_broker_gets_its_share_and_no_more_is_copied() -> None:
    moves = plan_moves(partitions((1, 2), (2, 1), (1, 2)), places(1, 2, 3))
    assert sum(len(move.adding) for move in moves) == 2
    assert {replica for move in moves for replica in move.adding} == {3}


def test_further_replicas_follow_the_present_ones() -> None:
    assert after(plan_moves(partitions((1, 2), (2, 3)), places(1, 2, 3), 3)) == {0: (1, 2, 3), 1: (2, 3, 1)}


def test_other_racks_and_machines_are_preferred() -> None:
    racks = {1: "a", 2: "a", 3: "b"}
    assert after(plan_moves(partitions((1,)), places(1, 2, 3, rack=racks), 2)) == {0: (1, 3)}
    shared = {1: Place(None, "x"), 2: Place(None, "x"), 3: Place(None, "y")}
    assert after(plan_moves(partitions((1,)), shared, 2)) == {0: (1, 3)}


def test_preferred_leaders_are_spread() -> None:
    moves = plan_moves(partitions((1, 2, 3), (1, 2, 3), (1, 2, 3)), places(1, 2, 3))
    assert {(1, 2, 3)[0], *(move.after[0] for move in moves)} == {1, 2, 3}
    assert all(not move.adding for move in moves)


def test_too_few_brokers_are_an_error() -> None:
    with pytest.raises(Failure, match="needs 2 brokers for its replicas, and 1 remain"):
        plan_moves(partitions((1, 2)), places(1), None)


@given(
    st.lists(st.permutations([1, 2, 3, 4, 5]).map(lambda order: tuple(order[:2])), min_size=1, max_size=12),
    st.sets(st.integers(1, 7), min_size=3, max_size=7),
    st.integers(1, 3),
)
def test_every_plan_is_valid_and_even(replicas: list[tuple[int, ...]], brokers: set[int], factor: int) -> None:
    known = partitions(*replicas)
    changed = after(plan_moves(known, places(*sorted(brokers)), factor))
    final = {each.index: changed.get(each.index, each.replicas) for each in known}
    load: Counter[int] = Counter(replica for each in final.values() for replica in each)
    for each in final.values():
        assert len(each) == len(set(each)) == factor
        assert set(each) <= brokers
    assert max(load[broker] for broker in brokers) - min(load[broker] for broker in brokers) <= 1


def test_the_replicas_of_each_partition_are_read(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(
        '{"version":1,"partitions":[{"topic":"t","partition":1,"replicas":[2,3],"log_dirs":["any","any"]}]}'
    )
    assert read_plan_file(str(file)) == {("t", 1): (2, 3)}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"partitions": []}', '{"partitions": [{"topic": "t"}]}', '{"partitions": [1]}']
)
def test_another_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    with pytest.raises(Failure, match=r"plan\.json"):
        read_plan_file(str(file))
