"""Placement of replicas: striped over racks, then over brokers, as Kafka's placer does. Pure.

Each partition starts one rack and one broker after the previous partition; the first starts at random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Replicas = tuple[int, ...]


def place_replicas(
    racks_by_broker: Mapping[int, str | None],
    partition_count: int,
    replication_factor: int,
    random_below: Callable[[int], int],
) -> list[Replicas] | Refusal:
    if replication_factor <= 0:
        return _refuse(
            replication_factor,
            f"Invalid replication factor {replication_factor}: the replication factor must be positive.",
        )
    if replication_factor > len(racks_by_broker):
        return _refuse(
            replication_factor,
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(racks_by_broker)} broker(s) are registered or some brokers have all their log directories cordoned.",
        )
    racks: dict[str | None, list[int]] = {}
    for broker in sorted(racks_by_broker):
        racks.setdefault(racks_by_broker[broker], []).append(broker)
    rings = [racks[name] for name in sorted(racks, key=lambda name: (name is not None, name or ""))]
    starts = [random_below(len(ring)) for ring in rings]
    first_rack = random_below(len(rings))
    return [
        _place_one(rings, [start + partition for start in starts], first_rack + partition, replication_factor)
        for partition in range(partition_count)
    ]


def _place_one(
    rings: Sequence[Sequence[int]], starts: Sequence[int], first_rack: int, replication_factor: int
) -> Replicas:
    """Takes one broker of each rack in turn until there are enough."""
    replicas: list[int] = []
    taken = [0] * len(rings)
    rack = first_rack
    while len(replicas) < replication_factor:
        index = rack % len(rings)
        ring = rings[index]
        if taken[index] < len(ring):
            replicas.append(ring[(starts[index] + taken[index]) % len(ring)])
            taken[index] += 1
        rack += 1
    return tuple(replicas)


def check_assignment(
    replicas: Sequence[int], brokers: Mapping[int, object], replication_factor: int | None
) -> Refusal | None:
    """Whether a client may assign a partition to these brokers."""
    if not replicas:
        return _refuse_assignment("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker in sorted(replicas):
        if broker not in brokers:
            return _refuse_assignment(
                f"The manual partition assignment includes broker {broker}, but no such broker is registered."
            )
        if broker == previous:
            return _refuse_assignment(f"The manual partition assignment includes the broker {broker} more than once.")
        previous = broker
    if replication_factor is not None and len(replicas) != replication_factor:
        return _refuse_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )
    return None


def _refuse(replication_factor: int, reason: str) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"Unable to replicate the partition {replication_factor} time(s): {reason}",
    )


def _refuse_assignment(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
