"""Somebody reads what the system has forgotten, again and again, while others are measured."""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

from bench.brokers import BrokerError, RunningBroker
from bench.generator import Generator
from bench.topics import create
from bench.workloads import PARTITIONS

COLD_RECORD_BYTES = 1_000
CAN_FORGET = hasattr(os, "posix_fadvise")
FORGOTTEN_AT_ONCE_BYTES = 4 << 20  # in one call a gigabyte takes a core for 30 ms; less than 2 MB may do nothing


@contextlib.contextmanager
def cold_reads(generator: Generator, broker: RunningBroker, records: int) -> Iterator[list[float]]:
    """A topic is read again and again, each time after the system was told to forget it; what is yielded grows by the
    seconds of each pass. The reader decodes nothing and runs when nobody else wants to: what is felt is the broker's
    work and the disk's, not a client that takes a core."""
    topic = create(broker)
    generator.run("produce", brokers=broker.address, topic=topic, records=records, size=COLD_RECORD_BYTES)
    os.sync()
    humble = ("chrt", "--idle", "0") if shutil.which("chrt") else ("nice", "-n", "19")
    consumer = ("bench.discarding_consumer", broker.address, topic, str(PARTITIONS), str(records))
    with subprocess.Popen([*humble, sys.executable, "-m", *consumer], stdin=PIPE, stdout=PIPE, text=True) as reader:
        passes = _Passes(reader, broker.directory / "data", topic)
        try:
            passes.begin()
            yield passes.seconds
        finally:
            passes.end()
    if passes.problem is not None or not passes.seconds:
        raise BrokerError(f"the cold topic could not be read from {broker.title}: {passes.problem or 'no pass ended'}")


class _Passes:
    """A thread that has the reader go through the topic, forgotten anew each time."""

    def __init__(self, reader: subprocess.Popen[str], directory: Path, topic: str) -> None:
        self.seconds: list[float] = []
        self.problem: Exception | None = None
        self._reader = reader
        self._directory = directory
        self._topic = topic
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def begin(self) -> None:
        self._hear()  # it is ready
        self._thread.start()

    def end(self) -> None:
        self._is_over.set()
        if self._thread.ident is not None:
            self._thread.join()
        assert self._reader.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it is gone, and `problem` tells of it
            self._reader.stdin.close()

    def _run(self) -> None:
        try:
            if hasattr(os, "SCHED_IDLE"):
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # this thread alone
            while not self._is_over.is_set():
                forget_pages(self._directory, self._topic)
                print("again", file=self._reader.stdin, flush=True)
                self.seconds.append(float(self._hear()))
        except Exception as problem:  # told by whoever began this
            self.problem = problem

    def _hear(self) -> str:
        assert self._reader.stdout is not None
        if not (line := self._reader.stdout.readline()):
            raise BrokerError("the reader ended; what it said is above")
        return line


def forget_pages(directory: Path, topic: str) -> None:
    """The system drops what it holds of these files in memory, if they are written back and it can."""
    if not CAN_FORGET:
        return
    for path in directory.glob(f"{topic}-*/*.log"):
        with path.open("rb") as file:
            for start in range(0, path.stat().st_size, FORGOTTEN_AT_ONCE_BYTES):
                os.posix_fadvise(file.fileno(), start, FORGOTTEN_AT_ONCE_BYTES, os.POSIX_FADV_DONTNEED)
