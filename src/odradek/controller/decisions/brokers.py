"""The life of a broker as the controller decides it: registered, fenced, unfenced, shutting down, gone. Pure.

A change of a broker's state and the repairs of the partitions that depend on it are one commit, as far as
`partition_repair.MAX_PARTITIONS_PER_COMMIT` allows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from odradek.controller.decisions.partition_repair import MAX_PARTITIONS_PER_COMMIT, decide_repairs
from odradek.metadata.changes import BrokerRegistered, BrokerRemoved
from odradek.metadata.metadata_level import NEWEST_LEVEL
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from odradek.controller.decisions.topics import Cluster
    from odradek.metadata.changes import Change
    from odradek.metadata.entities import BrokerImage


class BrokerDecision(NamedTuple):
    """`is_complete` is False when partitions are left that another commit must repair."""

    error: ErrorCode
    changes: list[Change]
    is_complete: bool = True


class LiveBroker(NamedTuple):
    """A registration that exists. `previous_broker_epochs` are those of the broker's earlier registrations since which
    it cannot have lost records (KIP-966)."""

    broker: BrokerImage
    previous_broker_epochs: Collection[int]
    metadata_level: int = NEWEST_LEVEL


def decide_registration(broker: BrokerImage, cluster: Cluster) -> tuple[int, list[Change]]:
    """The broker epoch of the only broker of its cluster: the version of the commit that registers it."""
    broker_epoch = cluster.image.version + 1
    return broker_epoch, [BrokerRegistered(replace(broker, broker_epoch=broker_epoch))]


def decide_live_brokers(live: Mapping[int, LiveBroker], cluster: Cluster) -> BrokerDecision:
    """Fence the brokers without a registration, and add new registrations.

    A broker with a new registration is fenced first, so that it leaves in-sync sets and loses what it led: it may have
    restarted with fewer records. It then leads again what only it can lead. A registration that was fenced while it
    existed stays fenced."""
    brokers = cluster.image.brokers
    absent = {broker.node_id: broker.broker_epoch for broker in brokers.values() if broker.node_id not in live}
    fenced = _fence(absent, brokers)
    new: list[BrokerImage] = []
    unclean_shutdowns: set[int] = set()
    for node_id, (broker, previous_broker_epochs, _) in sorted(live.items()):
        present = brokers.get(node_id)
        if present is not None and present.broker_epoch >= broker.broker_epoch:
            continue
        new.append(broker)
        # Sessions may expire while no controller commits: the committed registration need not be the last one. The
        # epoch of a broker that was unregistered is not known: it is believed that it has lost nothing.
        is_clean = bool(previous_broker_epochs) if present is None else present.broker_epoch in previous_broker_epochs
        if not is_clean:
            unclean_shutdowns.add(node_id)
    if not new:
        return _with_repairs(cluster, fenced)
    fenced += [BrokerRegistered(replace(broker, is_fenced=True)) for broker in new]
    # In one commit, whatever its size: without a part of it, a broker could be elected that has lost records.
    left = _with_repairs(cluster, fenced, unclean_shutdowns=unclean_shutdowns, limit=None)
    returned = [*left.changes, *(BrokerRegistered(broker) for broker in new)]
    return _with_repairs(cluster, returned)


def decide_fencing(registrations: Mapping[int, int], cluster: Cluster) -> BrokerDecision:
    """Fence registrations by node id and broker epoch; a broker that has registered again since is not fenced."""
    return _with_repairs(cluster, _fence(registrations, cluster.image.brokers))


def _fence(registrations: Mapping[int, int], brokers: Mapping[int, BrokerImage]) -> list[Change]:
    changes: list[Change] = []
    for node_id, broker_epoch in registrations.items():
        broker = brokers.get(node_id)
        if broker is not None and broker.broker_epoch == broker_epoch and not broker.is_fenced:
            changes.append(BrokerRegistered(replace(broker, is_fenced=True, is_shutting_down=False)))
    return changes


def decide_unfencing(node_id: int, broker_epoch: int, cluster: Cluster) -> BrokerDecision:
    """Unfence a registration that exists; partitions without a leader that it can lead get one."""
    return _change_broker(node_id, broker_epoch, cluster, lambda broker: replace(broker, is_fenced=False))


def decide_shutdown(node_id: int, broker_epoch: int, cluster: Cluster) -> BrokerDecision:
    """A controlled shutdown: the broker leaves all in-sync sets, and what it leads is given to others."""

    def shut_down(broker: BrokerImage) -> BrokerImage:
        return replace(broker, is_shutting_down=not broker.is_fenced)

    return _change_broker(node_id, broker_epoch, cluster, shut_down)


def decide_unregistration(node_id: int, cluster: Cluster) -> BrokerDecision | Refusal:
    """UnregisterBroker. Departure from Kafka: an active broker is refused, because it would stop serving at once.

    The broker stays in eligible leader sets: without it, a partition would be given to a replica that lacks records,
    which only ElectLeaders may ask for."""
    broker = cluster.image.brokers.get(node_id)
    if broker is None:
        return Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {node_id} is not currently registered")
    if broker.is_active:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Broker {node_id} is running: stop it before you unregister it")
    removed = BrokerRemoved(node_id, broker.broker_epoch)
    return _with_repairs(cluster, [removed])


def _change_broker(
    node_id: int, broker_epoch: int, cluster: Cluster, change: Callable[[BrokerImage], BrokerImage]
) -> BrokerDecision:
    broker = cluster.image.brokers.get(node_id)
    if broker is None or broker.broker_epoch != broker_epoch:
        return BrokerDecision(ErrorCode.STALE_BROKER_EPOCH, [])
    changed = change(broker)
    return _with_repairs(cluster, [] if changed == broker else [BrokerRegistered(changed)])


def _with_repairs(
    cluster: Cluster,
    changes: list[Change],
    *,
    unclean_shutdowns: Collection[int] = (),
    limit: int | None = MAX_PARTITIONS_PER_COMMIT,
) -> BrokerDecision:
    image = cluster.image.apply_all(changes) if changes else cluster.image
    repairs = decide_repairs(image, cluster.config, unclean_shutdowns=unclean_shutdowns, limit=limit)
    return BrokerDecision(ErrorCode.NONE, [*changes, *repairs.changes], repairs.is_complete)
