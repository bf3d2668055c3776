"""Reports replicas on log directories that failed or hang to the controller, so that other replicas lead, and leaders
do not wait for them.

A replica is reported while the metadata counts on it, and once for each state of its partition: the controller leaves
a partition as it is where no other replica has the records.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from odradek.controller.decisions.offline_replicas import MAX_OFFLINE_REPLICAS, OfflineReplica, counts_on
from odradek.host.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.host.clock import Clock, Timer
    from odradek.metadata.image import MetadataImage
    from odradek.replica.partition_table import PartitionTable

log = get_logger(__name__)

RETRY_AFTER_MS = 500.0


class OfflineReplicaChannel(Protocol):
    async def report_offline(self, replicas: Sequence[OfflineReplica]) -> None:
        """Returns when the controller has decided. Any exception means that the outcome is not known."""


class FailedReplicas:
    """One report at a time is on its way."""

    def __init__(self, node_id: int, channel: OfflineReplicaChannel, clock: Clock) -> None:
        self._node_id = node_id
        self._channel = channel
        self._clock = clock
        self._table: PartitionTable | None = None
        self._reported: dict[OfflineReplica, int] = {}  # partition epochs
        self._reporting: asyncio.Task[None] | None = None
        self._retry_timer: Timer | None = None

    def start(self, table: PartitionTable) -> None:
        self._table = table
        self.check()

    def stop(self) -> None:
        self._table = None
        if self._retry_timer is not None:
            self._retry_timer.cancel()
        if self._reporting is not None:
            self._reporting.cancel()

    def follow(self, before: MetadataImage, after: MetadataImage) -> None:
        """Subscriber of the metadata cache, after `PartitionTable.follow`."""
        if before.topics is not after.topics:
            self.check()

    def check(self) -> None:
        """After a log directory has failed, and after changes of partitions."""
        if self._reporting is None and self._retry_timer is None and self._unreported():
            self._reporting = asyncio.ensure_future(self._report())

    def _unreported(self) -> dict[OfflineReplica, int]:
        """The replicas to report, with the epochs of their partitions."""
        table = self._table
        if table is None or not (table.has_delays or any(each.failure is not None for each in table.directories)):
            return {}
        found: dict[OfflineReplica, int] = {}
        for partition in table:
            image = partition.image
            is_unusable = partition.directory.failure is not None or table.is_delayed(partition)
            if not is_unusable or image is None or not counts_on(image, self._node_id):
                continue
            key = OfflineReplica(partition.topic_id, partition.index)
            if self._reported.get(key) != image.partition_epoch:
                found[key] = image.partition_epoch
        return found

    async def _report(self) -> None:
        try:
            while unreported := self._unreported():
                taken = dict(list(unreported.items())[:MAX_OFFLINE_REPLICAS])
                await self._channel.report_offline(list(taken))
                self._reported |= taken
        except Exception as problem:
            log.warning("replicas on failed log directories could not be reported; retrying", reason=problem)
            self._retry_timer = self._clock.call_after(RETRY_AFTER_MS, self._retry)
        finally:
            self._reporting = None

    def _retry(self) -> None:
        self._retry_timer = None
        self.check()
