"""Applies changes of leadership to the partitions of this broker.

A broker begins to lead a partition whose log it truncates when the truncation has ended. The metadata waits for that
with a limit, because the disk may hang; beyond the limit, the broker begins to lead later."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.metadata.store import StoreError
from odradek.replica.leadership import LogState
from odradek.replica.metadata_application import apply_leadership, postpone_leadership

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from odradek.metadata.entities import PartitionImage
    from odradek.replica.partition import Partition

log = get_logger(__name__)

TRUNCATION_LIMIT_S = 5.0


class LeadershipChanges:
    def __init__(
        self,
        node_id: int,
        run_in_order: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]],
        after_late_election: Callable[[], None],
        *,
        may_lead: bool,
    ) -> None:
        """`run_in_order` as of the partition table. `after_late_election` is called after a change of leadership that
        the metadata did not wait for."""
        self.may_lead = may_lead
        self._node_id = node_id
        self._run_in_order = run_in_order
        self._after_late_election = after_late_election
        self._late: dict[Partition, asyncio.Task[None]] = {}
        self.count = 0
        """How often this broker began to lead a partition."""

    def is_late(self, partition: Partition) -> bool:
        """Whether this broker leads the partition when its truncation has ended, which takes long."""
        return partition in self._late

    @property
    def has_late(self) -> bool:
        return bool(self._late)

    def apply(self, partition: Partition, image: PartitionImage) -> None:
        self.count += apply_leadership(partition, image, self._node_id, may_lead=self.may_lead)

    async def apply_all(self, changed: Iterable[tuple[Partition, PartitionImage]]) -> None:
        truncating: list[tuple[Partition, PartitionImage]] = []
        for partition, image in changed:
            if image.leader == self._node_id and partition.follower_log.is_truncating:
                truncating.append((partition, image))
            else:
                self.apply(partition, image)
        if truncating:
            await self._wait_for_truncations([partition for partition, _ in truncating])
        for partition, image in truncating:
            if partition.follower_log.is_truncating:
                postpone_leadership(partition, image)
                self._begin_late(partition)
            else:
                self.apply(partition, image)

    async def _wait_for_truncations(self, partitions: Sequence[Partition]) -> None:
        settling = [asyncio.ensure_future(each.follower_log.settle()) for each in partitions]
        _, late = await asyncio.wait(settling, timeout=TRUNCATION_LIMIT_S)
        for each in late:
            each.cancel()

    def _begin_late(self, partition: Partition) -> None:
        if partition not in self._late:
            log.error(
                "a truncation takes long: the partition is led when it has ended", topic=partition.topic,
                partition=partition.index, path=partition.directory.path,
            )  # fmt: skip
            self._late[partition] = asyncio.ensure_future(self._lead_later(partition))

    async def _lead_later(self, partition: Partition) -> None:
        is_applied = False

        async def apply_newest() -> None:
            nonlocal is_applied
            is_applied = self._apply_newest(partition)

        try:
            while not is_applied:
                while partition.follower_log.is_truncating:
                    await partition.follower_log.settle()
                await self._run_in_order(apply_newest)
        except StoreError:
            return  # the broker is stopping
        finally:
            del self._late[partition]

    def _apply_newest(self, partition: Partition) -> bool:
        """False if the broker must wait for another truncation: it followed, and was elected again, before its turn."""
        image = partition.image
        if image is None or partition.log_state is LogState.RETIRED:
            return True
        if image.leader == self._node_id and partition.follower_log.is_truncating:
            return False
        self.apply(partition, image)
        self._after_late_election()
        return True

    def stop(self) -> None:
        for task in self._late.values():
            task.cancel()
