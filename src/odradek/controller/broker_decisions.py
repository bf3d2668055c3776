"""The life of a broker as the controller decides it: registered, fenced, unfenced, shutting down, gone. Pure.

A change of a broker's state and the repairs of the partitions that depend on it are one commit, as far as
`partition_repair.MAX_PARTITIONS_PER_COMMIT` allows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from odradek.controller.partition_repair import decide_repairs
from odradek.metadata.changes import BrokerRegistered, BrokerRemoved
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from odradek.protocol.sentinels import NO_BROKER_EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from odradek.controller.partition_repair import Repairs
    from odradek.controller.topic_decisions import Cluster
    from odradek.metadata.changes import Change
    from odradek.metadata.entities import BrokerImage


class BrokerDecision(NamedTuple):
    """`is_complete` is False when partitions are left that another commit must repair."""

    error: ErrorCode
    changes: list[Change]
    is_complete: bool = True


def decide_registration(
    broker: BrokerImage, previous_broker_epoch: int | None, cluster: Cluster
) -> tuple[int, BrokerDecision]:
    """The broker epoch, which is the version of the commit that registers the broker.

    `previous_broker_epoch` is the epoch that the broker had when it last stopped without a loss of records. If the
    registered one is another, the broker may have lost records (KIP-966). None when the broker is the only one of its
    cluster: the registration then changes no partitions."""
    broker_epoch = cluster.image.version + 1
    registered = BrokerRegistered(replace(broker, broker_epoch=broker_epoch))
    if previous_broker_epoch is None:
        return broker_epoch, BrokerDecision(ErrorCode.NONE, [registered])
    present = cluster.image.brokers.get(broker.node_id)
    has_lost_records = previous_broker_epoch != (NO_BROKER_EPOCH if present is None else present.broker_epoch)
    unclean_shutdown = broker.node_id if has_lost_records else None
    return broker_epoch, _with_repairs(cluster, [registered], unclean_shutdown=unclean_shutdown)


def decide_fencing(registrations: Mapping[int, int], cluster: Cluster) -> BrokerDecision:
    """Fence registrations by node id and broker epoch; a broker that has registered anew is not fenced."""
    changes: list[Change] = []
    for node_id, broker_epoch in registrations.items():
        broker = cluster.image.brokers.get(node_id)
        if broker is not None and broker.broker_epoch == broker_epoch and not broker.is_fenced:
            changes.append(BrokerRegistered(replace(broker, is_fenced=True, is_shutting_down=False)))
    return _with_repairs(cluster, changes)


def decide_absence(live_brokers: Collection[int], cluster: Cluster) -> BrokerDecision:
    """Fence every broker that is not among the live ones: a controller that takes over missed when they left."""
    absent = {
        broker.node_id: broker.broker_epoch
        for broker in cluster.image.brokers.values()
        if broker.node_id not in live_brokers
    }
    return decide_fencing(absent, cluster)


def decide_unfencing(node_id: int, broker_epoch: int, applied_version: int, cluster: Cluster) -> BrokerDecision:
    """Unfence a broker that has applied its own registration; what has no leader and can be led by it gets one."""

    def unfence(broker: BrokerImage) -> BrokerImage:
        return replace(broker, is_fenced=broker.is_fenced and applied_version < broker_epoch)

    return _change_broker(node_id, broker_epoch, cluster, unfence)


def decide_shutdown(node_id: int, broker_epoch: int, cluster: Cluster) -> BrokerDecision:
    """A controlled shutdown: the broker leaves all in-sync sets, and what it leads is given to others."""

    def shut_down(broker: BrokerImage) -> BrokerImage:
        return replace(broker, is_shutting_down=not broker.is_fenced)

    return _change_broker(node_id, broker_epoch, cluster, shut_down)


def decide_unregistration(node_id: int, cluster: Cluster) -> BrokerDecision | Refusal:
    """UnregisterBroker. Departure from Kafka: an active broker is refused, because it would stop serving at once."""
    broker = cluster.image.brokers.get(node_id)
    if broker is None:
        return Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {node_id} is not currently registered")
    if broker.is_active:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Broker {node_id} is running: stop it before you unregister it")
    removed = BrokerRemoved(node_id, broker.broker_epoch)
    return _with_repairs(cluster, [removed], unclean_shutdown=node_id)


def _change_broker(
    node_id: int, broker_epoch: int, cluster: Cluster, change: Callable[[BrokerImage], BrokerImage]
) -> BrokerDecision:
    broker = cluster.image.brokers.get(node_id)
    if broker is None or broker.broker_epoch != broker_epoch:
        return BrokerDecision(ErrorCode.STALE_BROKER_EPOCH, [])
    changed = change(broker)
    return _with_repairs(cluster, [] if changed == broker else [BrokerRegistered(changed)])


def _with_repairs(cluster: Cluster, changes: list[Change], *, unclean_shutdown: int | None = None) -> BrokerDecision:
    image = cluster.image.apply_all(changes) if changes else cluster.image
    repairs: Repairs = decide_repairs(image, cluster.config, unclean_shutdown=unclean_shutdown)
    return BrokerDecision(ErrorCode.NONE, [*changes, *repairs.changes], repairs.is_complete)
