"""Allocates producer ids. Blocks of them are reserved durably, so no id is given twice, also after a crash."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.controller.channel import ControllerChannel

BLOCK_SIZE = 1000


class ProducerIds:
    """The unused rest of a block is lost at a restart, which 2^63 ids allow."""

    def __init__(self, controller: ControllerChannel) -> None:
        self._controller = controller
        self._next_id = 0
        self._end_id = 0
        self._one_at_a_time = asyncio.Lock()

    async def allocate(self) -> int:
        async with self._one_at_a_time:
            if self._next_id == self._end_id:
                self._next_id = await self._controller.allocate_producer_ids(BLOCK_SIZE)
                self._end_id = self._next_id + BLOCK_SIZE
            producer_id = self._next_id
            self._next_id += 1
            return producer_id
