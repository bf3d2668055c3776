"""A host for metadata tests: a real disk for SQLite, work done at once, ids that count up."""

import uuid
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from odradek.host.background import BackgroundProcess
from odradek.host.clock import SystemClock
from odradek.host.connecting import SystemNetwork
from odradek.host.disk import Disk
from odradek.host.host import Host
from odradek.host.real_disk import RealDisk
from odradek.host.workers import DirectoryWorkers

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class InlineWorkers:
    async def run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        return function(*args)

    def for_directory(self, path: str) -> DirectoryWorkers:
        return DirectoryWorkers(self, self)

    def close(self) -> None: ...


class CountingEntropy:
    def __init__(self) -> None:
        self.count = 1000

    def uuid(self) -> uuid.UUID:
        self.count += 1
        return uuid.UUID(int=self.count)

    def random_below(self, bound: int) -> int:
        return 0

    def nonce(self) -> str:
        self.count += 1
        return f"{self.count:048x}"


def inline_host(disk: Disk | None = None) -> Host:
    return Host(
        clock=SystemClock(),
        disk=disk or RealDisk(),
        entropy=CountingEntropy(),
        workers=InlineWorkers(),
        background=BackgroundProcess(),  # which nothing here starts
        network=SystemNetwork(),
    )
