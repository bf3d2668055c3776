"""Allocates producer ids. Blocks of them are reserved durably, so no id is given twice, also after a crash."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.controller.requests import AllocateProducerIds
from odradek.metadata.store import StoreError

if TYPE_CHECKING:
    from odradek.controller.channel import ControllerChannel

BLOCK_SIZE = 1000
BLOCK_TIMEOUT_S = 5.0


class ProducerIds:
    """The unused rest of a block is lost at a restart, which 2^63 ids allow."""

    def __init__(self, controller: ControllerChannel) -> None:
        self._controller = controller
        self._next_id = 0
        self._end_id = 0
        self._next_block: asyncio.Task[None] | None = None

    async def allocate(self) -> int:
        """`StoreError` when no controller has reserved a block in time. Requests that wait for the same block fail
        together. The attempt goes on without them, so that a later request may find its block."""
        while self._next_id == self._end_id:
            if self._next_block is None:
                self._next_block = asyncio.ensure_future(self._reserve_block())
                self._next_block.add_done_callback(_retrieve_exception)
            block = self._next_block
            done, _ = await asyncio.wait((block,), timeout=BLOCK_TIMEOUT_S)  # does not cancel it with the caller
            if not done:
                raise StoreError("no controller has reserved producer ids in time")
            block.result()
        producer_id = self._next_id
        self._next_id += 1
        return producer_id

    async def _reserve_block(self) -> None:
        try:
            first_id = await self._controller.ask(AllocateProducerIds(BLOCK_SIZE))
            self._next_id, self._end_id = first_id, first_id + BLOCK_SIZE
        finally:
            self._next_block = None


def _retrieve_exception(block: asyncio.Task[None]) -> None:
    """All requests that waited for it may be gone."""
    if not block.cancelled():
        block.exception()
