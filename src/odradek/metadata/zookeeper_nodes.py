"""Reads and fenced writes of data that is larger than a node: numbered parts under one parent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.host.zookeeper import (
    BadVersion,
    ConnectionLost,
    CreateNode,
    DeleteNode,
    MultiRefused,
    NoAnswer,
    NodeExists,
    NoNode,
)
from odradek.metadata.commit_parts import join_parts
from odradek.metadata.zookeeper_claim import Fenced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.host.zookeeper import CheckVersion, ZooKeeperSession

WRITE_ATTEMPTS = 3  # when the connection is lost
DELETES_AT_ONCE = 100


async def write_parts(session: ZooKeeperSession, path: str, parts: Sequence[bytes], fence: CheckVersion) -> None:
    """`Fenced` when another controller has taken over. Parts that are there already are from an earlier attempt to
    write the same data: the path is used for nothing else."""
    await _create_fenced(session, path, b"", fence)
    for number, part in enumerate(parts):
        await _create_fenced(session, f"{path}/{number}", part, fence)


async def _create_fenced(session: ZooKeeperSession, path: str, data: bytes, fence: CheckVersion) -> None:
    for attempt in range(WRITE_ATTEMPTS):
        try:
            await session.multi([fence, CreateNode(path, data)])
        except MultiRefused as refused:
            if refused.index == 0 and isinstance(refused.reason, BadVersion):
                raise Fenced from refused
            if not isinstance(refused.reason, NodeExists):
                raise refused.reason from refused
        except ConnectionLost as problem:
            if attempt == WRITE_ATTEMPTS - 1 or isinstance(problem, NoAnswer):
                raise
            continue
        return


async def read_parts(session: ZooKeeperSession, path: str, part_count: int) -> bytes:
    found = await asyncio.gather(*(session.get(f"{path}/{number}") for number in range(part_count)))
    return join_parts([(number, data) for number, (data, _) in enumerate(found)], part_count)


async def delete_nodes(session: ZooKeeperSession, paths: Sequence[str]) -> None:
    """Deletes the nodes in this order, not atomically. If another process has deleted a node, the others of its batch
    stay for the next call."""
    for start in range(0, len(paths), DELETES_AT_ONCE):
        try:
            await session.multi([DeleteNode(path) for path in paths[start : start + DELETES_AT_ONCE]])
        except MultiRefused:
            continue


async def delete_parts(session: ZooKeeperSession, path: str) -> None:
    try:
        numbers = await session.children(path)
    except NoNode:
        return
    await delete_nodes(session, [*(f"{path}/{number}" for number in numbers), path])
