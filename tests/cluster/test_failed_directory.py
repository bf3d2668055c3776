"""A log directory of one broker fails: other brokers lead what it led there, and wait for it no longer."""

import asyncio
import errno

import pytest

from odradek.metadata.entities import PartitionImage
from tests.cluster.member import Member
from tests.cluster.story import Story
from tests.replication.invariants import Violation

FAILING = "/more"
Key = tuple[str, int]


class DirectoryStory(Story):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, {"log.dirs": f"/data,{FAILING}", "num.partitions": "2"})

    async def _tell(self) -> None:
        await self._start_cluster()
        await self._until(self._is_in_sync, "the replicas are not in sync")
        member = self._chance.choice(self._members)
        failed = self._hosted(member, FAILING)
        kept = self._hosted(member, "/data")
        if not any(self._leader(key) == member.node_id for key in failed):
            raise Violation("the broker leads nothing in the directory")
        led = [key for key in kept if self._leader(key) == member.node_id]
        member.table.fail_directory(member.table.directories[1], OSError(errno.EIO, "Input/output error"))
        await self._until(lambda: self._is_replaced(failed, member.node_id), "the failed replicas are not replaced")
        if [self._leader(key) for key in led] != [member.node_id] * len(led):
            raise Violation("partitions of the other directory have other leaders")
        images = [self._image_of(key) for key in failed]
        await asyncio.sleep(5)  # a poll's pause: nothing is reported again
        changed = [
            (key, image, now)
            for key, image in zip(failed, images, strict=True)
            if (now := self._image_of(key)) != image
        ]
        if changed:
            raise Violation(f"partitions have changed again: {changed}")

    def _hosted(self, member: Member, path: str) -> list[Key]:
        return [(each.topic, each.index) for each in member.table if each.directory.path == path]

    def _image_of(self, key: Key) -> PartitionImage:
        newest = self._newest_image()
        assert newest is not None
        return newest.topics[key[0]].partitions[key[1]]

    def _leader(self, key: Key) -> int:
        return self._image_of(key).leader

    def _is_replaced(self, keys: list[Key], node_id: int) -> bool:
        images = [self._image_of(key) for key in keys]
        return all(
            each.leader not in (node_id, -1) and node_id not in each.in_sync_replicas + each.eligible_leader_replicas
            for each in images
        )


@pytest.mark.timeout(600)
def test_other_brokers_lead_what_a_failed_directory_has() -> None:
    result = DirectoryStory(1).run()
    assert not result.anomalies, "\n".join([*result.anomalies, *result.events])
