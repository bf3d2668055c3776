"""Somebody reads what the system has forgotten, again and again, while others are measured."""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from bench.brokers import BrokerError, RunningBroker
from bench.generator import Generator
from bench.topics import create

COLD_RECORD_BYTES = 1_000
CAN_FORGET = hasattr(os, "posix_fadvise")


@contextlib.contextmanager
def cold_reads(generator: Generator, broker: RunningBroker, records: int) -> Iterator[list[float]]:
    """A topic is read again and again, each time after the system was told to forget it; what is yielded grows by the
    seconds of each pass. The reader decodes nothing and runs when nobody else wants to: what is felt is the broker's
    work and the disk's, not a client that takes a core."""
    topic = create(broker, partitions=1)
    generator.run("produce", brokers=broker.address, topic=topic, records=records, size=COLD_RECORD_BYTES)
    os.sync()
    humble = ("chrt", "--idle", "0") if shutil.which("chrt") else ("nice", "-n", "19")
    command = (*humble, sys.executable, "-m", "bench.discarding_consumer", broker.address, topic, str(records))
    is_over = threading.Event()
    passes: list[float] = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
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
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
