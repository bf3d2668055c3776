"""The changes that the controller commits and everyone applies: the only ways in which metadata can change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from odradek.configuration.config_types import ConfigResourceType
    from odradek.metadata.client_quotas import QuotaEntity
    from odradek.metadata.image import PartitionImage, TopicImage


@dataclass(frozen=True, slots=True)
class TopicCreated:
    topic: TopicImage


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """The topic's settings go with it."""

    topic_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    topic_id: uuid.UUID
    partitions: tuple[PartitionImage, ...]


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """New leaders, epochs or in-sync sets; each partition replaces the one with its index."""

    topic_id: uuid.UUID
    partitions: tuple[PartitionImage, ...]


@dataclass(frozen=True, slots=True)
class ConfigsChanged:
    """None removes a setting."""

    resource_type: ConfigResourceType
    resource_name: str
    values: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class ClientQuotaChanged:
    """None removes a quota."""

    entity: QuotaEntity
    values: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class ProducerIdsAllocated:
    next_producer_id: int


Change = (
    TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | PartitionsChanged
    | ConfigsChanged
    | ClientQuotaChanged
    | ProducerIdsAllocated
)
