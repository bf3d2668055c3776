"""Changes to the metadata: the controller commits them, and every broker applies them. There is no other way to change
the metadata.

`metadata/image` applies a change, `metadata/change_codec` encodes it. Every `match` over `Change` ends in
`assert_never`: the type checker names the places that a new kind of change must be added to.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from odradek.configuration.config_types import ConfigResourceType
    from odradek.metadata.client_quotas import QuotaEntity
    from odradek.metadata.entities import BrokerImage, PartitionImage, TopicImage
    from odradek.metadata.streams import StreamImage
    from odradek.security.acls.bindings import AclBinding
    from odradek.security.delegation_tokens import DelegationToken
    from odradek.security.scram_credentials import ScramCredential, ScramMechanism


@dataclass(frozen=True, slots=True)
class TopicCreated:
    topic: TopicImage


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """Deletes the topic and its settings."""

    topic_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """The indexes continue those of the topic's partitions."""

    topic_id: uuid.UUID
    partitions: tuple[PartitionImage, ...]


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """Each partition replaces the one with its index; its partition epoch is the replaced one's + 1."""

    topic_id: uuid.UUID
    partitions: tuple[PartitionImage, ...]


@dataclass(frozen=True, slots=True)
class StreamChanged:
    """Adds a stream, or replaces the one with the same id, whose path stays."""

    stream: StreamImage


@dataclass(frozen=True, slots=True)
class StreamDeleted:
    """Deletes the stream, its topics and their settings."""

    stream_id: uuid.UUID


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
    """All producer ids below `next_producer_id` are taken."""

    next_producer_id: int


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """Adds a broker, or replaces its earlier registration. A broker epoch never decreases."""

    broker: BrokerImage


@dataclass(frozen=True, slots=True)
class BrokerRemoved:
    """Removes the registration with this epoch."""

    node_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class ControllerElected:
    """The controller epoch is higher than that of every earlier controller."""

    controller_id: int
    controller_epoch: int


@dataclass(frozen=True, slots=True)
class AclsAdded:
    """None of the rules exists."""

    bindings: tuple[AclBinding, ...]


@dataclass(frozen=True, slots=True)
class AclsRemoved:
    """Each of the rules exists."""

    bindings: tuple[AclBinding, ...]


@dataclass(frozen=True, slots=True)
class ScramCredentialChanged:
    """None removes the credential of a user for one mechanism."""

    user: str
    mechanism: ScramMechanism
    credential: ScramCredential | None


@dataclass(frozen=True, slots=True)
class StandInKeyChosen:
    """The secret from which brokers derive the salts of users that do not exist."""

    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class DelegationTokenChanged:
    """Adds a token, or replaces the one with the same id."""

    token: DelegationToken


@dataclass(frozen=True, slots=True)
class DelegationTokenRemoved:
    token_id: str


@dataclass(frozen=True, slots=True)
class FeatureLevelChanged:
    """The level of a feature of the whole cluster (`metadata/features`); 0 disables it."""

    name: str
    level: int


UserChange = ScramCredentialChanged | StandInKeyChosen | DelegationTokenChanged | DelegationTokenRemoved

Change = (
    TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | PartitionsChanged
    | StreamChanged
    | StreamDeleted
    | ConfigsChanged
    | ClientQuotaChanged
    | ProducerIdsAllocated
    | BrokerRegistered
    | BrokerRemoved
    | ControllerElected
    | UserChange
    | AclsAdded
    | AclsRemoved
    | FeatureLevelChanged
)
