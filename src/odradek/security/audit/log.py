"""The audit log of a broker: lines are formatted on the event loop and written by a worker, within a rate.

Nothing waits for the file. Events beyond the rate, or while the disk hangs, are counted, and their number is written as
a line.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.host.logs import get_logger
from odradek.security.audit.events import Action, Actor, action_fields, as_line, denial_fields
from odradek.security.audit.rate_bound import RateBound
from odradek.security.audit.rotating_file import RotatingFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.host.clock import Timer
    from odradek.host.host import Host
    from odradek.security.authorizer import Operation, Resource

log = get_logger(__name__)

MOST_WAITING_LINES = 10_000
LOGIN_SHARE = 10
"""Logins get at most a tenth of the lines: clients that try passwords must not displace the lines of others."""
DENIAL_SHARE = 2
"""Denials get at most half of the lines: a client that asks for what it may not do must not displace its changes."""
REPORT_AFTER_MS = 1_000.0


class AuditLog:
    is_on = True

    def __init__(self, host: Host, path: str, *, max_bytes: int, max_files: int, lines_per_second: int) -> None:
        self._clock = host.clock
        self._path = host.disk.absolute_path(path)
        self._file = RotatingFile(host.disk, self._path, max_bytes, max_files)
        self._worker = host.workers.for_directory(self._path.rpartition("/")[0] or "/").files
        self._rate = RateBound(lines_per_second, host.clock.monotonic_ms())
        self._logins = RateBound(max(lines_per_second // LOGIN_SHARE, 1), host.clock.monotonic_ms())
        self._denials = RateBound(max(lines_per_second // DENIAL_SHARE, 1), host.clock.monotonic_ms())
        self._waiting: list[tuple[bytes, int]] = []  # lines, and the number of events that each stands for
        self._writing: asyncio.Task[None] | None = None
        self._report_timer: Timer | None = None
        self._has_failed = False
        self._is_closed = False

    async def start(self) -> None:
        """OSError if the file cannot be written to."""
        self._loop = asyncio.get_running_loop()
        await self._worker.run(self._file.open)
        await self._worker.run(self._file.make_private)

    async def close(self) -> None:
        self._is_closed = True
        if self._report_timer is not None:
            self._report_timer.cancel()
        self._report_left_out()
        if self._writing is not None:
            await self._writing
        await self._worker.run(self._file.close)

    def denied(self, actor: Actor, operation: Operation, resource: Resource) -> None:
        self._on_loop(lambda: denial_fields(actor, operation, resource), self._denials)

    def performed(self, actor: Actor, action: Action) -> None:
        self._on_loop(lambda: action_fields(actor, action))

    def authenticated(self, actor: Actor, action: Action) -> None:
        self._on_loop(lambda: action_fields(actor, action), self._logins)

    def _on_loop(self, fields: Callable[[], Mapping[str, object]], share: RateBound | None = None) -> None:
        """A fetch of old records is authorized on a worker thread; the state of this log belongs to the event loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._loop.call_soon_threadsafe(self._accept, fields, share)
        else:
            self._accept(fields, share)

    def _accept(self, fields: Callable[[], Mapping[str, object]], share: RateBound | None) -> None:
        if self._may_write(share):
            self._write(fields())
        else:
            self._report_later()

    def _may_write(self, share: RateBound | None) -> bool:
        """`share` is the part of the lines that logins or denials get; changes get all that the others leave."""
        now_ms = self._clock.monotonic_ms()
        if share is not None and not share.take(now_ms):
            return False
        # Half of the queue belongs to changes, for a disk that hangs while denials come.
        if len(self._waiting) >= (MOST_WAITING_LINES if share is None else MOST_WAITING_LINES // 2):
            self._rate.left_out += 1
            return False
        return self._rate.take(now_ms)

    def _report_later(self) -> None:
        if self._report_timer is None and not self._is_closed:
            self._report_timer = self._clock.call_after(REPORT_AFTER_MS, self._report_left_out)

    def _report_left_out(self) -> None:
        self._report_timer = None
        count = sum(bound.take_left_out() for bound in (self._rate, self._logins, self._denials))
        if count:
            self._write({"outcome": "left out", "count": count}, count)

    def _write(self, fields: Mapping[str, object], event_count: int = 1) -> None:
        self._waiting.append((as_line(fields, self._clock.now_ms()), event_count))
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write_waiting())

    async def _write_waiting(self) -> None:
        while self._waiting:
            lines, self._waiting = self._waiting, []
            try:
                await self._worker.run(self._file.append, b"".join(line for line, _ in lines))
                self._has_failed = False
            except OSError as problem:
                self._rate.left_out += sum(event_count for _, event_count in lines)
                self._report_later()
                if not self._has_failed:
                    log.error("the audit log could not be written", path=self._path, reason=problem)
                self._has_failed = True
        self._writing = None
