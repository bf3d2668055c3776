"""The default of a nested struct is one shared, immutable instance."""

import pytest

from odradek.protocol.compile_constructor import shared_default
from odradek.protocol.messages.fetch import LeaderIdAndEpoch, PartitionData


def test_default_structs_are_shared_and_unchangeable() -> None:
    one, other = PartitionData(), PartitionData()
    assert one.current_leader is other.current_leader is shared_default(LeaderIdAndEpoch)
    with pytest.raises(AttributeError, match="assign a new one"):
        one.current_leader.leader_id = 3
    one.current_leader = LeaderIdAndEpoch(leader_id=3)
    assert other.current_leader.leader_id == -1


def test_a_shared_default_is_of_the_structs_own_kind() -> None:
    default = PartitionData().current_leader
    assert isinstance(default, LeaderIdAndEpoch)
    assert repr(default) == "LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)"
