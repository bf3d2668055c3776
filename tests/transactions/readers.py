"""Readers of partitions, with and without the records of open and aborted transactions."""

import asyncio
import random
from collections.abc import Sequence

from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from tests.transactions import requests
from tests.transactions.history import History, Reading, Seen
from tests.transactions.producers import RETRIED_AT_LEADER
from tests.transactions.requests import Connection, Lost

MOST_FETCHES = 500
SIZES_BYTES = (1, 200, 1000, 1 << 20)


class Reader:
    def __init__(
        self,
        name: str,
        connection: Connection,
        history: History,
        chance: random.Random,
        partitions: Sequence[TopicPartition],
        *,
        is_committed_only: bool,
    ) -> None:
        self.is_stopping = False
        self._connection = connection
        self._history = history
        self._chance = chance
        self._readings = [Reading(name, partition, is_committed_only) for partition in partitions]
        history.readings += self._readings

    async def run(self) -> None:
        while not self.is_stopping:
            reading = self._chance.choice(self._readings)
            await read_some(self._connection, self._history, reading, self._chance.choice(SIZES_BYTES))
            await asyncio.sleep(self._chance.random() / 2)  # a poll's pause


async def read_some(connection: Connection, history: History, reading: Reading, max_bytes: int) -> bool:
    """Whether the reading has come to the end of what can be read."""
    position, is_committed_only = reading.position, reading.is_committed_only
    try:
        data = await requests.fetch(
            connection, reading.partition, position, max_bytes, is_committed_only=is_committed_only
        )
    except Lost:
        return False
    error = ErrorCode(data.error_code)
    if error is not ErrorCode.NONE:
        # A leader that does not know yet that it was deposed may have a shorter log.
        is_deposed = error is ErrorCode.OFFSET_OUT_OF_RANGE and history.has_new_leaders
        if error not in RETRIED_AT_LEADER and not is_deposed:
            history.report(f"unexpected error: {error.name} for Fetch of {reading.partition} at {position}")
        return False
    name = f"{reading.partition} by {reading.reader}"
    if data.last_stable_offset < reading.last_stable_offset and not history.has_new_leaders:
        history.report(f"last stable offset: {name} {data.last_stable_offset} after {reading.last_stable_offset}")
    reading.last_stable_offset = data.last_stable_offset
    end_offset = data.last_stable_offset if is_committed_only else data.high_watermark
    for offset, value in requests.read_fetched(data, is_committed_only=is_committed_only):
        if offset >= end_offset:
            history.report(f"read too far: {name} {offset}, the end is {end_offset}")
        if offset >= position:
            reading.position = max(reading.position, offset + 1)
            if value is not None:
                reading.seen.append(Seen(offset, value, history.now()))
    return reading.position >= end_offset


async def read_all(connection: Connection, history: History, partition: TopicPartition) -> None:
    """What can be read at the end."""
    for is_committed_only in (True, False):
        reading = Reading("the last reader", partition, is_committed_only)
        history.final[partition, is_committed_only] = reading
        for _ in range(MOST_FETCHES):
            if await read_some(connection, history, reading, 1 << 20):
                break
        else:
            raise Lost
