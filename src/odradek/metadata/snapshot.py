"""An image as changes and back: a snapshot is a commit that starts from nothing. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.metadata.changes import (
    AclsAdded,
    BrokerRegistered,
    ClientQuotaChanged,
    ConfigsChanged,
    ControllerElected,
    FeatureLevelChanged,
    ProducerIdsAllocated,
    StreamChanged,
    TopicCreated,
)
from odradek.metadata.image import MetadataImage
from odradek.protocol.sentinels import NO_CONTROLLER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.metadata.changes import Change


def empty_image(cluster_id: str) -> MetadataImage:
    return MetadataImage(version=0, cluster_id=cluster_id, controller_id=NO_CONTROLLER)


def image_as_changes(image: MetadataImage) -> list[Change]:
    """The changes that turn an empty image into this one; version and cluster id are kept beside them."""
    changes: list[Change] = []
    if image.controller_epoch:
        changes.append(ControllerElected(image.controller_id, image.controller_epoch))
    changes += [BrokerRegistered(broker) for broker in image.brokers.values()]
    changes += [StreamChanged(stream) for stream in image.streams.values()]
    changes += [TopicCreated(topic) for topic in image.topics.values()]
    changes += [ConfigsChanged(*resource, values) for resource, values in image.configs.items()]
    changes += [ClientQuotaChanged(entity, values) for entity, values in image.client_quotas.items()]
    changes += image.users.as_changes()
    if image.acls:
        changes.append(AclsAdded(tuple(image.acls.bindings)))
    changes += [FeatureLevelChanged(*each) for each in image.changed_feature_levels.items()]
    if image.next_producer_id:
        changes.append(ProducerIdsAllocated(image.next_producer_id))
    return changes


def image_from_changes(image: MetadataImage, changes: Iterable[Change], version: int) -> MetadataImage:
    """The image after several commits (or a snapshot and several commits), of which the last made this version."""
    return replace(image.apply_all(changes), version=version)
