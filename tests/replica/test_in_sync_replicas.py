"""How far the in-sync set has come, and whether it is large enough."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.replica.in_sync_replicas import committed_offset, has_enough_replicas


def test_a_leader_alone_commits_what_it_has() -> None:
    assert committed_offset(7, ()) == 7


@given(leader=st.integers(0, 2**62), followers=st.lists(st.integers(0, 2**62), max_size=5))
def test_what_every_in_sync_replica_has_is_committed(leader: int, followers: list[int]) -> None:
    committed = committed_offset(leader, followers)
    assert committed in (leader, *followers)
    assert all(committed <= end for end in (leader, *followers))


@pytest.mark.parametrize(
    ("in_sync", "minimum", "replicas", "is_enough"),
    [
        (1, 1, 1, True),
        (1, 2, 1, True),  # nobody can have more replicas in sync than there are
        (1, 2, 2, False),
        (2, 2, 2, True),
        (2, 2, 3, True),
        (1, 2, 3, False),
        (2, 3, 2, True),
        (0, 1, 1, False),
    ],
)
def test_no_more_in_sync_replicas_are_asked_for_than_there_are(
    in_sync: int, minimum: int, replicas: int, is_enough: bool
) -> None:
    assert has_enough_replicas(in_sync, minimum, replicas) is is_enough
