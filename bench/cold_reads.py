"""A consumer that repeatedly reads a topic from the disk while another workload is measured."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

from bench.brokers import BrokerError, RunningBroker
from bench.generator import Generator
from bench.processes import lowest_priority
from bench.topics import create
from bench.workloads import PARTITIONS

COLD_RECORD_BYTES = 1_000
CAN_EVICT = hasattr(os, "posix_fadvise")
EVICTED_AT_ONCE_BYTES = 4 << 20  # one call for a gigabyte occupies a core for 30 ms; below 2 MB it may have no effect


@contextlib.contextmanager
def cold_reads(generator: Generator, broker: RunningBroker, records: int) -> Iterator[list[float]]:
    """Yields a list that grows by the seconds of each pass over the topic, whose pages are evicted before each pass.
    The consumer decodes nothing and has the lowest priority, so that the measured workload is slowed down by the broker
    and the disk, not by a client that occupies a core."""
    topic = create(broker)
    generator.run("produce", brokers=broker.address, topic=topic, records=records, size=COLD_RECORD_BYTES)
    os.sync()
    consumer = ("bench.discarding_consumer", broker.address, topic, str(PARTITIONS), str(records))
    with subprocess.Popen(
        [*lowest_priority(), sys.executable, "-m", *consumer], stdin=PIPE, stdout=PIPE, text=True
    ) as reader:
        passes = _Passes(reader, broker.directory / "data", topic)
        try:
            passes.begin()
            yield passes.seconds
        finally:
            passes.end()
    if passes.problem is not None or not passes.seconds:
        raise BrokerError(f"the cold topic could not be read from {broker.title}: {passes.problem or 'no pass ended'}")


class _Passes:
    """A thread that evicts the topic from the page cache and has the reader read it, repeatedly."""

    def __init__(self, reader: subprocess.Popen[str], directory: Path, topic: str) -> None:
        self.seconds: list[float] = []
        self.problem: Exception | None = None
        self._reader = reader
        self._directory = directory
        self._topic = topic
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def begin(self) -> None:
        self._read_line()  # "ready"
        self._thread.start()

    def end(self) -> None:
        self._is_over.set()
        if self._thread.ident is not None:
            self._thread.join()
        assert self._reader.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the reader ended; `problem` says why
            self._reader.stdin.close()

    def _run(self) -> None:
        try:
            if hasattr(os, "SCHED_IDLE"):
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # this thread alone
            while not self._is_over.is_set():
                evict_pages(self._directory, self._topic)
                print("again", file=self._reader.stdin, flush=True)
                self.seconds.append(float(self._read_line()))
        except Exception as problem:  # raised by cold_reads, on the caller's thread
            self.problem = problem

    def _read_line(self) -> str:
        assert self._reader.stdout is not None
        if not (line := self._reader.stdout.readline()):
            raise BrokerError("the reader ended; its error output is above")
        return line


def evict_pages(directory: Path, topic: str) -> None:
    """Drop the pages of the topic's segments from the page cache, where the system supports it."""
    if not CAN_EVICT:
        return
    for path in directory.glob(f"{topic}-*/*.log"):
        with path.open("rb") as file:
            for start in range(0, path.stat().st_size, EVICTED_AT_ONCE_BYTES):
                os.posix_fadvise(file.fileno(), start, EVICTED_AT_ONCE_BYTES, os.POSIX_FADV_DONTNEED)
