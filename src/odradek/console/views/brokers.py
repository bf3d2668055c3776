"""Brokers with what they lead and hold, their log directories, and a plan of moves. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.console.cluster.snapshot import LogDirectory, Snapshot
    from odradek.console.cluster.traffic import BrokerLoad


@dataclass(frozen=True, slots=True)
class BrokerRow:
    broker_id: int
    address: str
    rack: str
    is_running: bool
    is_controller: bool
    leads: int
    preferred: int
    replicas: int
    not_in_sync: int
    stored_bytes: int
    share: int  # of the bytes of all brokers, in percent
    directories: Sequence[LogDirectory]
    load: BrokerLoad | None  # None if the broker does not report metrics


def broker_rows(snapshot: Snapshot) -> list[BrokerRow]:
    counts = snapshot.health.counts
    stored: dict[int, int] = {}
    for directory in snapshot.disks.directories:
        stored[directory.broker_id] = stored.get(directory.broker_id, 0) + directory.stored_bytes
    total = sum(stored.values()) or 1
    return [
        BrokerRow(
            broker.broker_id,
            f"{broker.host}:{broker.port}",
            broker.rack or "",
            not broker.is_fenced,
            broker.broker_id == snapshot.state.cluster.controller_id,
            counts.leads[broker.broker_id],
            counts.preferred[broker.broker_id],
            counts.replicas[broker.broker_id],
            counts.replicas[broker.broker_id] - counts.in_sync[broker.broker_id],
            stored.get(broker.broker_id, 0),
            round(100 * stored.get(broker.broker_id, 0) / total),
            [each for each in snapshot.disks.directories if each.broker_id == broker.broker_id],
            snapshot.loads.get(broker.broker_id),
        )
        for broker in snapshot.state.brokers.values()
    ]


def used_percent(directory: LogDirectory) -> int | None:
    """How full the volume is; None if the broker does not report it."""
    if directory.total_bytes <= 0:
        return None
    return round(100 * (directory.total_bytes - directory.usable_bytes) / directory.total_bytes)
