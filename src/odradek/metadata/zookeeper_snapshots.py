"""Snapshots of the metadata in ZooKeeper: they keep the log of commits short.

A snapshot is taken in the background, while commits go on. It exists once the head names it. The commits between the
last two snapshots stay, for readers that are a little behind. Everything else that the head does not name is removed
after each snapshot.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.host.zookeeper import BadVersion, MultiRefused, NoNode, SetData, ZooKeeperError
from odradek.metadata.change_codec import encode_changes
from odradek.metadata.commit_parts import split_into_parts
from odradek.metadata.snapshot import image_as_changes
from odradek.metadata.store import StoreError
from odradek.metadata.zookeeper_claim import Fenced
from odradek.metadata.zookeeper_layout import (
    CHANGES,
    HEAD,
    PARTS,
    SNAPSHOTS,
    Head,
    change_path,
    decode_change,
    encode_head,
    parts_name,
    version_in,
)
from odradek.metadata.zookeeper_nodes import delete_nodes, delete_parts, write_parts
from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from odradek.host.entropy import Entropy
    from odradek.host.workers import WorkerPool
    from odradek.host.zookeeper import CheckVersion, ZooKeeperSession
    from odradek.metadata.image import MetadataImage

log = get_logger(__name__)

# A snapshot is due when the commits after the last one are this many, or larger than it and than this many bytes.
SNAPSHOT_COMMITS = 1000
SNAPSHOT_BYTES = 1 << 20
HEAD_ATTEMPTS = 5


class Snapshots:
    def __init__(
        self,
        session: ZooKeeperSession,
        load: Callable[[], Awaitable[MetadataImage]],
        read_head: Callable[[], Awaitable[tuple[Head, int]]],
        changing_head: Callable[[], AbstractAsyncContextManager[None]],
        workers: WorkerPool,
        entropy: Entropy,
    ) -> None:
        """`changing_head` keeps commits of this process from changing the head."""
        self._session = session
        self._load = load
        self._read_head = read_head
        self._changing_head = changing_head
        self._taking: asyncio.Task[None] | None = None
        self._workers = workers
        self._entropy = entropy

    def is_due(self, head: Head) -> bool:
        is_large = head.commit_bytes > max(SNAPSHOT_BYTES, head.snapshot_bytes)
        return is_large or head.version - head.snapshot_version >= SNAPSHOT_COMMITS

    def begin_if_due(self, head: Head, find_fence: Callable[[], Awaitable[CheckVersion]]) -> None:
        """Take one snapshot at a time. One that fails is begun again after a later commit: the commits are enough to
        load from."""
        if self._taking is None and self.is_due(head):
            self._taking = asyncio.ensure_future(self._take_or_report(find_fence))
            self._taking.add_done_callback(self._end)

    def _end(self, _taking: asyncio.Task[None]) -> None:
        self._taking = None

    async def settle(self) -> None:
        """Wait for the snapshot that is being taken."""
        if self._taking is not None:
            await asyncio.wait([self._taking])

    async def stop(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
        await self.settle()

    async def _take_or_report(self, find_fence: Callable[[], Awaitable[CheckVersion]]) -> None:
        try:
            await self.take(await find_fence())
        except (ZooKeeperError, StoreError, MalformedMessage, Fenced) as problem:
            log.warning("metadata snapshot failed", reason=problem)
        except Exception as problem:
            log.error("metadata snapshot failed", exc_info=problem)

    async def take(self, fence: CheckVersion) -> None:
        """Writes a snapshot of the newest image. `Fenced` when another controller has taken over."""
        contained, _ = await self._read_head()  # the image has its commits, and may have later ones
        image = await self._load()
        parts = await self._workers.run(lambda: split_into_parts(encode_changes(image_as_changes(image))))
        name = parts_name(image.version, self._entropy.uuid().hex)
        await write_parts(self._session, f"{SNAPSHOTS}/{name}", parts, fence)
        naming = Head(
            snapshot_version=image.version,
            snapshot_name=name,
            snapshot_parts=len(parts),
            snapshot_bytes=sum(map(len, parts)),
            commit_bytes=contained.commit_bytes,
        )
        async with self._changing_head():
            await self._name_in_head(naming, fence)
        await self._remove_unnamed()

    async def _name_in_head(self, snapshot: Head, fence: CheckVersion) -> None:
        """`commit_bytes` of the snapshot's head are those of the commits that it contains."""
        for _ in range(HEAD_ATTEMPTS):
            before, node_version = await self._read_head()
            if before.snapshot_version >= snapshot.snapshot_version:
                return  # another store has taken a newer one
            after = replace(
                snapshot,
                version=before.version,
                history_version=before.snapshot_version,
                commit_bytes=max(before.commit_bytes - snapshot.commit_bytes, 0),
            )
            try:
                await self._session.multi([fence, SetData(HEAD, encode_head(after), node_version)])
                return
            except MultiRefused as refused:
                if not isinstance(refused.reason, BadVersion):
                    raise refused.reason from refused
                if refused.index == 0:
                    raise Fenced from refused

    async def _remove_unnamed(self) -> None:
        """Only what no later head can name: a commit or snapshot is written for one version, and that has passed."""
        head, _ = await self._read_head()
        for name in await self._session.children(SNAPSHOTS):
            if name != head.snapshot_name and version_in(name) <= head.snapshot_version:
                await delete_parts(self._session, f"{SNAPSHOTS}/{name}")
        old = [name for name in await self._session.children(CHANGES) if version_in(name) <= head.history_version]
        await delete_nodes(self._session, [f"{CHANGES}/{name}" for name in old])
        for name in await self._session.children(PARTS):
            version = version_in(name)
            if version <= head.history_version or (version <= head.version and not await self._is_named(name)):
                await delete_parts(self._session, f"{PARTS}/{name}")

    async def _is_named(self, name: str) -> bool:
        version = version_in(name)
        try:
            node = decode_change((await self._session.get(change_path(version)))[0])
        except NoNode:
            return False
        return bool(node.part_count) and parts_name(version, node.token) == name
