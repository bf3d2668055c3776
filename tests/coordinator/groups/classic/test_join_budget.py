"""Limits of the metadata that members bring when they join."""

import gc

import pytest

from odradek.coordinator.groups.classic import join_budget
from odradek.coordinator.groups.classic.group import ClassicGroup, ClassicState
from odradek.coordinator.groups.classic.join_budget import BATCHES_OF_ALL_GROUPS, BATCHES_OF_METADATA
from odradek.coordinator.groups.classic.members import metadata_bytes
from odradek.protocol.errors import ErrorCode
from tests.coordinator.groups.shard_bench import ShardBench

LIMIT_BYTES = 100_000
LARGE = {"stream": bytes(90_000)}
OTHER = {"stream": bytes(89_999)}


def make_bench() -> ShardBench:
    bench = ShardBench()
    bench.journal.batch_limit_bytes = LIMIT_BYTES
    return bench


def hold(bench: ShardBench, number: int, protocols: dict[str, bytes] = LARGE) -> ErrorCode | None:
    """A member joins a group of its own and never asks for its assignment."""
    return bench.join(version=3, group_id=f"group-{number}", protocols=protocols).error


def hold_assigned(bench: ShardBench, number: int, protocols: dict[str, bytes]) -> ErrorCode | None:
    error = hold(bench, number, protocols)
    group = bench.shard.groups[f"group-{number}"]
    assert isinstance(group, ClassicGroup)
    group.state = ClassicState.STABLE
    return error


def test_a_member_with_more_metadata_than_a_batch_is_refused() -> None:
    bench = make_bench()
    refused = bench.join(version=3, protocols={"a": bytes(60_000), "b": bytes(60_000)})
    assert refused.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not bench.shard.groups
    assert not bench.journal.records


def test_protocols_without_metadata_take_memory_too() -> None:
    bench = make_bench()
    refused = bench.join(version=3, protocols={f"{number}": b"" for number in range(1_000)})
    assert refused.error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_groups_with_an_assignment_share_a_larger_budget() -> None:
    bench = make_bench()
    for protocols in (LARGE, {"stream": bytes(15_000)}):
        largest = BATCHES_OF_ALL_GROUPS * LIMIT_BYTES // metadata_bytes(tuple(protocols.items()))
        outcomes = [hold_assigned(bench, number, protocols) for number in range(largest + 5)]
        assert outcomes == [None] * largest + [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 5
        assert hold(bench, largest + 10, {"stream": bytes(1_000)}) is None
        bench = make_bench()


def test_many_groups_are_not_all_counted_for_each_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_budget, "GROUPS_COUNTED_PER_JOIN", 1)
    bench = make_bench()
    medium = {"stream": bytes(15_000)}
    largest = BATCHES_OF_ALL_GROUPS * LIMIT_BYTES // metadata_bytes(tuple(medium.items()))
    outcomes = [hold_assigned(bench, number, medium) for number in range(largest + 5)]
    assert outcomes == [None] * largest + [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 5
    bench.shard.groups.clear()
    gc.collect()
    assert None in [hold(bench, number, medium) for number in range(largest)]


def test_groups_without_an_assignment_share_a_budget() -> None:
    bench = make_bench()
    outcomes = [hold(bench, number) for number in range(BATCHES_OF_METADATA + 3)]
    assert outcomes.count(None) == BATCHES_OF_METADATA
    assert set(outcomes[BATCHES_OF_METADATA:]) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    groups = [group for group in bench.shard.groups.values() if isinstance(group, ClassicGroup)]
    assert sum(len(group.members) for group in groups) == BATCHES_OF_METADATA


def test_small_joins_are_served_while_others_hold_the_budget() -> None:
    bench = make_bench()
    for number in range(BATCHES_OF_METADATA + 1):
        hold(bench, number)
    bench.form_group()
    assert bench.group.state_name == "Stable"


def test_an_assigned_group_frees_its_part_of_the_budget() -> None:
    bench = make_bench()
    for number in range(BATCHES_OF_METADATA - 1):
        hold(bench, number)
    bench.form_group(1, protocols=LARGE)
    assert hold(bench, 100) is None
    assert hold(bench, 101) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_member_that_rejoins_with_as_much_as_before_is_not_refused() -> None:
    bench = make_bench()
    (member_id,) = bench.form_group(1, protocols=LARGE)
    for number in range(BATCHES_OF_METADATA + 1):
        hold(bench, number)
    assert bench.join(member_id, protocols=OTHER).error is ErrorCode.NONE


def test_the_metadata_of_a_group_has_a_limit() -> None:
    bench = make_bench()
    small = {"stream": bytes(15_000)}
    outcomes = [bench.join(version=3, protocols=small).error for _ in range(60)]
    member_bytes = metadata_bytes(tuple(small.items()))
    assert outcomes.count(ErrorCode.GROUP_MAX_SIZE_REACHED) == 60 - BATCHES_OF_METADATA * LIMIT_BYTES // member_bytes
    assert len(bench.group.members) * member_bytes == bench.group.metadata_bytes


def test_members_that_leave_and_shards_that_unload_free_their_memory() -> None:
    bench = make_bench()
    member_id, _ = bench.join_new(protocols=LARGE)
    bench.leave((member_id, None))
    assert bench.group.metadata_bytes == 0
    for number in range(BATCHES_OF_METADATA):
        hold(bench, number)
    bench.restart()
    assert hold(bench, 100) is None
