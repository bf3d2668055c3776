"""Opens logs with one job per topic and log directory, on the workers of the directory, with a limit of time: a disk
that hangs delays its own partitions, and not the metadata.

A log directory in which no log is opened for `OPENING_LIMIT_S` hangs. Its jobs continue, and their logs are handed over
when they end.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from odradek.host.logs import get_logger
from odradek.replica.log_opening import PendingLog, open_logs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from odradek.host.host import Host
    from odradek.log.log_directory import LogDirectory
    from odradek.log.partition_log import PartitionLog
    from odradek.protocol.topic_partition import TopicPartition

log = get_logger(__name__)

OPENING_LIMIT_S = 5.0


class Openings(NamedTuple):
    """The opened logs, those that could not be opened, and those of log directories that hang."""

    opened: list[tuple[PendingLog, PartitionLog]]
    unopened: list[PendingLog]
    late: list[PendingLog]


Job = asyncio.Future[tuple[list[tuple[PendingLog, "PartitionLog"]], list[PendingLog]]]


class LogOpeningJobs:
    def __init__(self, host: Host, take_late: Callable[[Openings], Awaitable[None]]) -> None:
        """`take_late` gets the outcome of a job that has exceeded the limit. The job is late until it has returned."""
        self._host = host
        self._take_late = take_late
        self._late: dict[Job, list[PendingLog]] = {}
        self._hand_overs: set[asyncio.Task[None]] = set()
        self.late_keys: frozenset[TopicPartition] = frozenset()
        self._opened_counts: dict[LogDirectory, int] = {}

    @property
    def hung_directories(self) -> set[LogDirectory]:
        return {pending[0].directory for pending in self._late.values()}

    async def open(self, pending: Sequence[PendingLog], *, is_new: bool, has_limit: bool) -> Openings:
        by_job: dict[tuple[str, LogDirectory], list[PendingLog]] = {}
        for each in pending:
            by_job.setdefault((each.topic.name, each.directory), []).append(each)
        jobs: dict[Job, list[PendingLog]] = {
            asyncio.ensure_future(self._open_in(directory, job, is_new)): job for (_, directory), job in by_job.items()
        }
        late = await self._wait(jobs) if has_limit else []
        for job in late:
            self._late[job] = jobs.pop(job)
            hand_over = asyncio.ensure_future(self._hand_over(job))
            self._hand_overs.add(hand_over)
            hand_over.add_done_callback(self._hand_overs.discard)
        self._update_keys()
        found = Openings([], [], [each for job in late for each in self._late[job]])
        for opened, unopened in await asyncio.gather(*jobs):
            found.opened.extend(opened)
            found.unopened.extend(unopened)
        return found

    async def _open_in(
        self, directory: LogDirectory, job: Sequence[PendingLog], is_new: bool
    ) -> tuple[list[tuple[PendingLog, PartitionLog]], list[PendingLog]]:
        files = self._host.workers.for_directory(directory.path).files
        return await files.run(open_logs, job, self._host, is_new, lambda: self._count(directory))

    def _count(self, directory: LogDirectory) -> None:
        """Worker threads call this; `_wait` only checks that the count moved."""
        self._opened_counts[directory] = self._opened_counts.get(directory, 0) + 1

    async def _wait(self, jobs: dict[Job, list[PendingLog]]) -> list[Job]:
        """The jobs of log directories that hang, when all others have ended."""
        waiting = set(jobs)
        late: list[Job] = []
        while waiting:
            before = dict(self._opened_counts)
            done, waiting = await asyncio.wait(waiting, timeout=OPENING_LIMIT_S)
            if done:
                continue
            hung = {each for each in waiting if not self._has_progressed(jobs[each][0].directory, before)}
            for job in hung:
                directory = jobs[job][0].directory
                log.error(
                    "a log directory does not respond: its new partitions are opened when it does",
                    path=directory.path, partitions=len(jobs[job]),
                )  # fmt: skip
            waiting -= hung
            late += hung
        return late

    def _has_progressed(self, directory: LogDirectory, before: dict[LogDirectory, int]) -> bool:
        return self._opened_counts.get(directory) != before.get(directory)

    async def _hand_over(self, job: Job) -> None:
        try:
            await self._take_late(Openings(*await job, []))
        except Exception as problem:
            log.error("partitions could not be opened", partitions=len(self._late[job]), exc_info=problem)
        finally:
            del self._late[job]
            self._update_keys()

    def _update_keys(self) -> None:
        self.late_keys = frozenset(each.key for pending in self._late.values() for each in pending)

    async def settle(self, keys: Iterable[TopicPartition]) -> None:
        """Wait until no late job opens one of these partitions."""
        wanted = set(keys)
        jobs = [job for job, pending in self._late.items() if any(each.key in wanted for each in pending)]
        if jobs:
            await asyncio.wait(jobs)
