"""A broker whose disk does as a test says: `python faulty_broker.py CONTROL broker …`.

In the directory CONTROL, `fail-sync`, `fail-write` and `full` hold the path below which fsync and writes fail with EIO,
or writes with ENOSPC after a part of them; as long as `hold-sync` does, fsync waits.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.cli.main import main
from odradek.host import real_disk
from odradek.host.host import Host, real_host
from odradek.host.real_disk import RealDisk, RealFile
from odradek.server import main as server_main

if TYPE_CHECKING:
    from odradek.host.disk import Buffer


class Faults:
    def __init__(self, control: Path) -> None:
        self._control = control

    def covers(self, name: str, path: str) -> bool:
        try:
            below = (self._control / name).read_text()
        except FileNotFoundError:
            return False
        return bool(below) and path.startswith(below)

    def _count(self, path: str) -> None:
        with open(self._control / "syncs", "a") as syncs:
            syncs.write(path + "\n")

    def before_sync(self, path: str) -> None:
        self._count(path)
        while self.covers("hold-sync", path):
            time.sleep(0.005)  # a poll's pause: a slow disk
        if self.covers("fail-sync", path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)


class FaultyFile(RealFile):
    def __init__(self, descriptor: int, path: str, faults: Faults) -> None:
        super().__init__(descriptor)
        self._path = path
        self._faults = faults

    def write_at(self, data: Buffer, position: int) -> None:
        if self._faults.covers("full", self._path):
            super().write_at(bytes(data)[: len(data) // 2], position)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        if self._faults.covers("fail-write", self._path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), self._path)
        super().write_at(data, position)

    def sync(self) -> None:
        self._faults.before_sync(self._path)
        super().sync()


class FaultyDisk(RealDisk):
    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self._faults = faults

    def open(self, path: str, *, create: bool = False) -> FaultyFile:
        flags = real_disk._OPEN_FLAGS | os.O_CREAT if create else real_disk._OPEN_FLAGS
        return FaultyFile(os.open(path, flags, 0o644), path, self._faults)


def run() -> None:
    disk = FaultyDisk(Faults(Path(sys.argv.pop(1))))

    def faulty_host() -> Host:
        return replace(real_host(), disk=disk)

    setattr(server_main, "real_host", faulty_host)  # noqa: B010 - it is not the module's to give away
    main()


if __name__ == "__main__":
    run()
