"""What is known of a cluster, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.admin.doctor.finding import Facts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from odradek.admin.cluster_state import ClusterState, Disks
    from odradek.admin.transactions import OpenTransaction


@dataclass(frozen=True, slots=True)
class Contact:
    """An attempt to reach a broker at the address that it advertises. `error` is None if it answered."""

    broker_id: int
    host: str
    port: int
    error: str | None = None
    addresses: tuple[str, ...] = ()  # that the host name resolves to
    apis: Mapping[int, tuple[int, int]] = field(default_factory=dict)  # smallest and largest version by API key
    features: Mapping[str, int] = field(default_factory=dict)  # finalized levels

    @property
    def place(self) -> str:
        return f"broker {self.broker_id} at {self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """`lag` is the number of records that the group has not read, None if it is not known; `growth` by how many it
    grew in `interval_s`."""

    name: str
    state: str
    lag: int | None = 0
    growth: int = 0
    interval_s: float = 0.0
    later_state: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds that a user may set."""

    most_lag: int = 100_000
    most_partitions_per_broker: int = 4_000


@dataclass(slots=True)
class ClusterFacts(Facts):
    """`from_elsewhere` says that the client connected to an address that is not of its own machine."""

    unreachable: str | None = None  # why no broker answered
    state: ClusterState | None = None
    contacts: Sequence[Contact] | None = None
    topic_settings: Mapping[str, Mapping[str, str]] | None = None
    disks: Disks | None = None
    groups: Sequence[GroupFacts] | None = None  # compared with the second sample
    later_groups: Sequence[GroupFacts] = ()  # the second sample
    hanging: Sequence[OpenTransaction] | None = None
    ahead_ms: Mapping[str, int] | None = None  # by partition of an internal topic: newest record minus this clock
    open_files: Mapping[int, tuple[int, int]] | None = None  # open and allowed, of the brokers that report them
    from_elsewhere: bool = False
    limits: Limits = field(default_factory=Limits)
    reasons: Mapping[str, str] = field(default_factory=dict)
    not_requested: Collection[str] = ()
