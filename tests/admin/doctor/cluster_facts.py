"""Facts of a healthy cluster of three brokers, and changes of them."""

from __future__ import annotations

from typing import Any

from odradek.admin.broker_requests import DescribedCluster, KnownBroker
from odradek.admin.cluster_state import ClusterState, PartitionState
from odradek.admin.doctor.cluster_facts import ClusterFacts, Contact
from odradek.admin.log_directories import Disks, LogDirectory

GB = 10**9


def brokers(*, fenced: tuple[int, ...] = (), count: int = 3) -> dict[int, KnownBroker]:
    return {each: KnownBroker(each, f"kafka-{each}", 9092, None, each in fenced) for each in range(1, count + 1)}


def state(*partitions: PartitionState, controller: int | None = 1, fenced: tuple[int, ...] = ()) -> ClusterState:
    return ClusterState(DescribedCluster("id", controller, brokers(fenced=fenced)), partitions)


def partition(
    topic: str = "orders",
    index: int = 0,
    leader: int = 1,
    replicas: tuple[int, ...] = (1, 2, 3),
    in_sync: tuple[int, ...] | None = None,
    **more: Any,
) -> PartitionState:
    return PartitionState(topic, index, leader, replicas, replicas if in_sync is None else in_sync, **more)


def contact(broker_id: int, **more: Any) -> Contact:
    settings = {"addresses": (f"10.0.0.{broker_id}",), "apis": {0: (3, 12)}, "features": {"transaction.version": 2}}
    return Contact(broker_id, f"kafka-{broker_id}", 9092, **{**settings, **more})


def directory(broker_id: int = 1, **more: Any) -> LogDirectory:
    values = {
        "path": "/data",
        "error_code": 0,
        "partitions": 1,
        "stored_bytes": GB,
        "total_bytes": 100 * GB,
        "usable_bytes": 60 * GB,
    }
    return LogDirectory(broker_id, **{**values, **more})


def healthy(**changes: Any) -> ClusterFacts:
    facts = ClusterFacts(
        state=state(partition(min_in_sync=2), partition("__consumer_offsets")),
        contacts=[contact(each) for each in (1, 2, 3)],
        topic_settings={"orders": {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}},
        disks=Disks({(1, "orders", 0): GB}, tuple(directory(each) for each in (1, 2, 3))),
        groups=[],
        hanging=[],
        open_files={1: (200, 100_000)},
        ahead_ms={"__consumer_offsets-0": -40},
        from_elsewhere=True,
    )
    for name, value in changes.items():
        setattr(facts, name, value)
    return facts
