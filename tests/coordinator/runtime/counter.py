"""A coordinator of named counters. It shows that the runtime knows nothing of groups, and is small enough that a test
can say what every answer must be."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
from odradek.coordinator.runtime.decision import Decision, Waiter
from odradek.coordinator.runtime.shard import Shard
from odradek.protocol.errors import ErrorCode
from odradek.protocol.malformed import MalformedMessage


def record(name: str, value: int) -> CoordinatorRecord:
    return CoordinatorRecord(name.encode(), value.to_bytes(8, "big"))


class Answer:
    """A request: its response or the error that it was refused with, exactly once."""

    def __init__(self) -> None:
        self.response: Any = None
        self.error: ErrorCode | None = None

    @property
    def is_waiting(self) -> bool:
        return self.response is None and self.error is None

    def __call__(self, response: Any) -> None:
        assert self.is_waiting, "answered twice"
        self.response = response

    def refuse(self, error: ErrorCode) -> None:
        assert self.is_waiting, "answered twice"
        self.error = error


class Counters:
    def __init__(self, shard: Shard[Counters]) -> None:
        self.shard = shard
        self.values: dict[str, int] = {}
        self.expired: list[Hashable] = []

    def replay(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self.values.pop(key.decode(), None)
        elif len(value) != 8:
            raise MalformedMessage("not a counter")
        else:
            self.values[key.decode()] = int.from_bytes(value, "big")

    def on_load(self) -> None:
        decision = Decision(0)
        for name in self.values:
            decision.start_timer(name, 1000)
        self.shard.settle(decision)

    def on_unload(self) -> None:
        pass

    def on_timer(self, key: Hashable) -> None:
        self.expired.append(key)

    def increment(self, name: str, waiter: Waiter) -> None:
        self.shard.append_pending()
        decision = Decision(0)
        value = self.values.get(name, 0) + 1

        def written(error: ErrorCode, decision: Decision) -> None:
            if error is ErrorCode.NONE:
                decision.start_timer(name, 1000)
                decision.answer(waiter, self.values[name])
            else:
                waiter.refuse(error)

        decision.write([record(name, value)], written)
        self.shard.settle(decision)

    def put(self, name: str, value: int, waiter: Answer) -> None:
        """A write that may share a batch."""

        def done(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                self.shard.answer(waiter, value)
            else:
                waiter.refuse(error)

        written = record(name, value)
        error = self.shard.write_shared([written], partial(self.replay, *written), done)
        if error is not None:
            done(error)

    def read(self, name: str, waiter: Waiter) -> None:
        self.shard.append_pending()
        self.shard.answer(waiter, self.values.get(name, 0))
