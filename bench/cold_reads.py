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
    is_over = threading.Event()
    passes: list[float] = []
    with subprocess.Popen([*humble, sys.executable, "-m", *consumer], stdin=PIPE, stdout=PIPE, text=True) as reader:
        assert reader.stdout is not None
        thread = threading.Thread(target=_read_until, args=(is_over, reader, broker.directory / "data", topic, passes))
        if not reader.stdout.readline():
            raise BrokerError(f"the cold topic could not be read from {broker.title}: see what the reader said above")
        thread.start()
        try:
            yield passes
        finally:
            is_over.set()
            thread.join()
    if reader.returncode:
        raise BrokerError(f"the cold topic could not be read from {broker.title}: see what the reader said above")


def _read_until(
    is_over: threading.Event, reader: subprocess.Popen[str], directory: Path, topic: str, passes: list[float]
) -> None:
    assert reader.stdin is not None
    assert reader.stdout is not None
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # this thread alone
    while not is_over.is_set():
        forget_pages(directory, topic)
        with contextlib.suppress(BrokenPipeError):  # then it says nothing either
            print("again", file=reader.stdin, flush=True)
        if not (seconds := reader.stdout.readline()):
            return
        passes.append(float(seconds))


def forget_pages(directory: Path, topic: str) -> None:
    """The system drops what it holds of these files in memory, if they are written back and it can."""
    if not CAN_FORGET:
        return
    for path in directory.glob(f"{topic}-*/*.log"):
        with path.open("rb") as file:
            for start in range(0, path.stat().st_size, FORGOTTEN_AT_ONCE_BYTES):
                os.posix_fadvise(file.fileno(), start, FORGOTTEN_AT_ONCE_BYTES, os.POSIX_FADV_DONTNEED)
