"""Locks for one process at a time: of one machine by the kernel, of all machines by a file on shared storage.

Storage such as S3 has no locks that end with their process. The holder writes its name into a file and renews it; if it
does not for `LEASE_S`, another process may take the lock. A holder that finds another name in the file has lost it.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import socket
import threading
import time
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.operating.processes import ProcessMark, own_mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from odradek.pipelines.operating.small_files import SmallFiles

LEASE_S = 60.0
RENEW_S = 10.0
# After a lock was taken. Of two processes that take it over at once, the later one has it. A holder that renews the
# file may have removed it for a moment, and is about to write it again.
SETTLE_S = 1.0


class Taken(Exception):
    """Another process holds the lock; `owner` is the text that it wrote into the file."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self.owner = owner


@contextmanager
def held(path: Path, owner: str) -> Iterator[None]:
    """Holds a lock of this machine, which the kernel releases when the process ends; raises `Taken`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Taken(file.read().strip()) from None
        file.truncate(0)
        file.write(owner)
        file.flush()
        yield


@dataclass(frozen=True, slots=True)
class Holder:
    """The content of the file of a lease."""

    token: str
    owner: str
    host: str
    pid: int
    began: str
    time_s: float  # of the last renewal

    @property
    def is_dead(self) -> bool:
        """Whether it was a process of this machine that has ended."""
        return self.host == socket.gethostname() and not ProcessMark(self.pid, self.began).is_alive


class Lease:
    """A lock on shared storage. `take`, then `renew` every `RENEW_S` until `is_lost` or `release`."""

    def __init__(
        self, files: SmallFiles, name: str, owner: str,
        clock: Callable[[], float] = time.time, pause: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        self._files, self._name, self._clock, self._pause = files, name, clock, pause
        mark = own_mark()
        self._mine = Holder(uuid.uuid4().hex, owner, socket.gethostname(), mark.pid, mark.began, clock())
        self.is_lost = False

    def take(self) -> None:
        """Takes the lock; raises `Taken` if another process holds it."""
        if not self._files.create(self._name, self._text()):
            self._await_expiry()
            self._files.replace(self._name, self._text())
        self._pause(SETTLE_S)
        present = self.holder()
        if present is None or present.token != self._mine.token:
            raise Taken("an unknown process" if present is None else present.owner)

    def renew(self) -> None:
        """Renews the lock, or finds that it is lost."""
        present = self.holder()
        self.is_lost |= present is not None and present.token != self._mine.token
        if not self.is_lost:
            self._files.replace(self._name, self._text())

    def release(self) -> None:
        present = self.holder()
        if present is not None and present.token == self._mine.token:
            self._files.remove(self._name)

    def holder(self) -> Holder | None:
        """The holder in the file; None if there is none, or if it is being written."""
        try:
            return Holder(**json.loads(self._files.read(self._name) or ""))
        except (ValueError, TypeError):
            return None

    def _text(self) -> str:
        return json.dumps(dataclasses.asdict(dataclasses.replace(self._mine, time_s=self._clock())))

    def _await_expiry(self) -> None:
        """Returns when the present holder has ended; raises `Taken` if it has not.

        The clocks of two machines may differ, so a holder whose time has passed is also watched for two renewals.
        """
        first = self.holder()
        if first is not None and first.is_dead:
            return
        if first is not None and self._clock() - first.time_s < LEASE_S:
            raise Taken(first.owner)
        for _ in range(4):
            self._pause(RENEW_S / 2)
            present = self.holder()
            if present is not None and present != first:
                raise Taken(present.owner)


@contextmanager
def leased(files: SmallFiles, name: str, owner: str, on_lost: Callable[[], None]) -> Iterator[None]:
    """Holds the lease, which a thread renews; calls `on_lost` on that thread if another process has taken it."""
    lease = Lease(files, name, owner)
    lease.take()
    is_over = threading.Event()

    def keep() -> None:
        renewed_at = time.monotonic()
        while not is_over.wait(RENEW_S):
            try:
                lease.renew()
                renewed_at = time.monotonic()
            except Exception:  # the storage is unavailable; others cannot take the lock until the lease has passed
                lease.is_lost = time.monotonic() - renewed_at > LEASE_S
            if lease.is_lost:
                on_lost()
                return

    keeper = threading.Thread(target=keep, name="lease", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        is_over.set()
        keeper.join()
        if not lease.is_lost:
            with suppress(Exception):  # a lock that stays expires; the error that ends the block matters more
                lease.release()
