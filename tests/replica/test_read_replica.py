"""Which replica a consumer is sent to."""

import pytest

from odradek.replica.read_replica import ReadableReplica, choose_read_replica

NEAR = ReadableReplica(2, "near", 10, 5.0)


@pytest.mark.parametrize(
    ("rack", "leader_rack", "followers", "expected"),
    [
        ("", "far", [NEAR], None),
        ("near", "near", [NEAR], None),
        ("near", "far", [], None),
        ("elsewhere", "far", [NEAR], None),
        ("near", "far", [NEAR], 2),
        ("near", None, [NEAR, ReadableReplica(3, "near", 11, 1.0)], 3),
        ("near", "far", [NEAR, ReadableReplica(3, "near", 10, 6.0)], 3),
        ("near", "far", [ReadableReplica(3, "near", 10, 5.0), NEAR], 2),
        ("near", "far", [ReadableReplica(1, None, 99, 9.0), NEAR], 2),
    ],
)
def test_the_rack_decides_then_the_length_of_the_log_then_when_it_was_caught_up(
    rack: str, leader_rack: str | None, followers: list[ReadableReplica], expected: int | None
) -> None:
    assert choose_read_replica(rack, leader_rack, followers) == expected
