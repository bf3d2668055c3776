"""Locks for one process at a time: of one machine by the kernel, of all machines by a file on shared storage.

Storage such as S3 has no locks that end with their process. There the last process that writes its name into the file
has the claim, and the one before stops when it finds another name: a pipeline moves to another machine by starting
there. A start that finds a claim waits until the one before has stopped.
"""

from __future__ import annotations

import fcntl
import threading
import time
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from odradek.pipelines.operating.small_files import SmallFiles

CHECK_S = 10.0
POLL_S = 0.25


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


@contextmanager
def claimed(
    files: SmallFiles, name: str, owner: str, on_lost: Callable[[], None], say: Callable[[str], None],
    is_stopped: Callable[[], bool] = lambda: False,
) -> Iterator[None]:  # fmt: skip
    """Claims a file; calls `on_lost` on a thread of its own when another process has claimed it.

    If there is a claim, waits until its process has noticed and stopped; raises `Taken` if this claim is lost then, or
    given back because this process is stopped while it waits.
    """
    claim = f"{owner} {uuid.uuid4().hex}"
    before = files.read(name)
    files.replace(name, claim)
    if before is not None:
        wait_s = 2 * CHECK_S
        say(f"the checkpoint was in use by {owner_of(before)}: waiting {wait_s:g} s, in which that run stops")
        ends_at_s = time.monotonic() + wait_s
        while time.monotonic() < ends_at_s and not is_stopped():
            time.sleep(min(POLL_S, wait_s))
        found = files.read(name)
        if found not in {claim, None}:
            raise Taken(owner_of(found or ""))
        if is_stopped():
            files.remove(name)
            raise Taken(owner_of(before))
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(CHECK_S):
            with suppress(Exception):  # the storage is unavailable
                if files.read(name) not in {claim, None}:  # None while another process replaces it
                    on_lost()
                    return

    watcher = threading.Thread(target=watch, name="claim", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
        with suppress(Exception):  # a claim that stays does no harm; the error that ends the block matters more
            if files.read(name) == claim:
                files.remove(name)


def owner_of(claim: str) -> str:
    return claim.rpartition(" ")[0] or claim
