"""The brokers, topics and partitions of a metadata image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.protocol.sentinels import NO_BROKER_EPOCH

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from odradek.configuration.listeners import Endpoint


@dataclass(frozen=True, slots=True)
class PartitionImage:
    """`partition_epoch` counts the changes of this partition. `adding_replicas` and `removing_replicas` are those of a
    reassignment in progress. The two sets of eligible leader replicas are those of KIP-966."""

    index: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_eligible_leader_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicImage:
    name: str
    topic_id: uuid.UUID
    partitions: tuple[PartitionImage, ...]
    is_internal: bool


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """One registration of a broker. `broker_epoch` is the version of the commit that registered it, `endpoints` are the
    addresses that clients of each listener connect to. A broker that is fenced or shutting down is not active: it leads
    nothing and is in no in-sync set."""

    node_id: int
    endpoints: Mapping[str, Endpoint]
    rack: str | None = None
    broker_epoch: int = NO_BROKER_EPOCH
    is_fenced: bool = False
    is_shutting_down: bool = False

    @property
    def is_active(self) -> bool:
        return not (self.is_fenced or self.is_shutting_down)
