"""Placement of replicas: striped over racks, then over brokers, as Kafka's StripedReplicaPlacer does. Pure.

Each partition starts one rack and one broker after the previous partition; the first starts at random. Brokers that are
not active are used when no other is left, and never for the first replica, which leads. Two replicas of a
partition are on one machine only when every broker of the other machines has one already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from odradek.metadata.entities import BrokerImage

Replicas = tuple[int, ...]
T = TypeVar("T")


class UsableBroker(NamedTuple):
    """`machine` identifies the computer that the broker runs on; None when it is unknown."""

    node_id: int
    rack: str | None = None
    machine: str | None = None
    is_active: bool = True


def usable_brokers(brokers: Mapping[int, BrokerImage], listener_name: str) -> list[UsableBroker]:
    """Brokers whose address on this listener has the same host run on one machine."""
    usable = []
    for broker in brokers.values():
        endpoint = broker.endpoints.get(listener_name)
        machine = None if endpoint is None else endpoint.host
        usable.append(UsableBroker(broker.node_id, broker.rack, machine, broker.is_active))
    return usable


def place_replicas(
    brokers: Sequence[UsableBroker],
    partition_count: int,
    replication_factor: int,
    random_below: Callable[[int], int],
) -> list[Replicas] | Refusal:
    if replication_factor <= 0:
        return _refuse(
            replication_factor,
            f"Invalid replication factor {replication_factor}: the replication factor must be positive.",
        )
    if not any(broker.is_active for broker in brokers):
        return _refuse(replication_factor, "All brokers are currently fenced.")
    if replication_factor > len(brokers):
        return _refuse(
            replication_factor,
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(brokers)} broker(s) are registered or some brokers have all their log directories cordoned.",
        )
    racks = _Racks(brokers, random_below)
    return [racks.place(replication_factor) for _ in range(partition_count)]


class _Ring:
    """Brokers of one rack; each partition that takes from the ring starts one broker after the previous one."""

    def __init__(self, brokers: Sequence[int], random_below: Callable[[int], int]) -> None:
        self.brokers = sorted(brokers)
        self._start = random_below(len(brokers)) if brokers else 0
        self._round = 0

    def next(self, round_number: int, accepts: Callable[[int], bool]) -> int | None:
        """The first broker in the order of this partition that is acceptable."""
        if not self.brokers:
            return None
        if self._round != round_number:
            self._round = round_number
            self._start = (self._start + 1) % len(self.brokers)
        for position in range(len(self.brokers)):
            broker = self.brokers[(self._start + position) % len(self.brokers)]
            if accepts(broker):
                return broker
        return None


class _Racks:
    def __init__(self, brokers: Sequence[UsableBroker], random_below: Callable[[int], int]) -> None:
        self._random_below = random_below
        self._machines = {broker.node_id: broker.machine for broker in brokers}
        by_rack: dict[str | None, list[UsableBroker]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, []).append(broker)
        names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
        self._racks = [_rack_rings(by_rack[name], random_below) for name in names]
        self._first_rack = random_below(len(self._racks))
        self._active_count = sum(broker.is_active for broker in brokers)
        self._round = 0

    def place(self, replication_factor: int) -> Replicas:
        if self._round == self._active_count and self._active_count > 1:
            self._shuffle()
        self._first_rack %= len(self._racks)
        taken: list[int] = []
        rack = self._first_rack
        while not taken:  # the leader: of the first rack that has an active broker
            active, _ = self._racks[rack]
            leader = active.next(self._round, lambda _: True)
            if leader is not None:
                taken.append(leader)
            else:
                rack = (rack + 1) % len(self._racks)
        leading_rack: int | None = rack
        rack = self._first_rack
        misses = 0  # racks in a row that had nothing on another machine
        while len(taken) < replication_factor:
            if rack == leading_rack:
                leading_rack = None  # passed over once: the leader is in it
                misses = 0  # it has not been looked at
            else:
                broker = self._next(rack, taken, may_share_machine=misses >= len(self._racks))
                misses = misses + 1 if broker is None else 0
                if broker is not None:
                    taken.append(broker)
            rack = (rack + 1) % len(self._racks)
        self._round += 1
        self._first_rack += 1
        return tuple(taken)

    def _next(self, rack: int, taken: Collection[int], *, may_share_machine: bool) -> int | None:
        machines = {self._machines[broker] for broker in taken} - {None}

        def accepts(broker: int) -> bool:
            return broker not in taken and (may_share_machine or self._machines[broker] not in machines)

        active, inactive = self._racks[rack]
        broker = active.next(self._round, accepts)
        return inactive.next(self._round, accepts) if broker is None else broker

    def _shuffle(self) -> None:
        """Every active broker has led once in this order: the next partitions get another, so that the same brokers do
        not always share partitions."""
        for ring in (ring for rack in self._racks for ring in rack):
            _shuffle(ring.brokers, self._random_below)
        _shuffle(self._racks, self._random_below)
        self._round = 0


def _rack_rings(brokers: Sequence[UsableBroker], random_below: Callable[[int], int]) -> tuple[_Ring, _Ring]:
    """Active brokers, and the others."""
    active = [broker.node_id for broker in brokers if broker.is_active]
    inactive = [broker.node_id for broker in brokers if not broker.is_active]
    return _Ring(active, random_below), _Ring(inactive, random_below)


def _shuffle(values: list[T], random_below: Callable[[int], int]) -> None:
    for last in range(len(values) - 1, 0, -1):
        chosen = random_below(last + 1)
        values[last], values[chosen] = values[chosen], values[last]


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
