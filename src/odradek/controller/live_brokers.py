"""Which brokers of a cluster are alive: the difference between the registrations and the image, as changes. Pure.

A broker that is gone is fenced: it keeps its replicas and is not offered to clients. One that registers again gets the
next leader epoch for each partition that it leads, so that requests from before its restart are refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.controller.topic_decisions import decide_new_leader_epochs
from odradek.metadata.changes import BrokerRegistered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.metadata.changes import Change
    from odradek.metadata.entities import BrokerImage
    from odradek.metadata.image import MetadataImage


def decide_live_brokers(live: Mapping[int, BrokerImage], image: MetadataImage) -> list[Change]:
    changes: list[Change] = []
    for node_id, broker in sorted(live.items()):
        present = image.brokers.get(node_id)
        if broker == present or (present is not None and present.broker_epoch > broker.broker_epoch):
            continue
        changes.append(BrokerRegistered(broker))
        if present is not None and present.broker_epoch != broker.broker_epoch:
            changes += decide_new_leader_epochs(image, node_id)
    changes += [
        BrokerRegistered(replace(broker, is_fenced=True))
        for node_id, broker in sorted(image.brokers.items())
        if node_id not in live and not broker.is_fenced
    ]
    return changes
