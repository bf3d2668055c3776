"""One Apache Kafka for a whole test run, started by the first worker that needs it.

The process that collects the tests owns it: it holds the writing end of a named pipe that is the broker's standard
input, so the broker ends with that process, even when that is killed. Workers start it under a file lock and write its
address to a file.
"""

import json
import os
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.jvm.apache_kafka import ApacheKafka
from tests.jvm.build_cache import exclusive
from tests.jvm.coordinators import await_coordinators

STOP_TIMEOUT_SECONDS = 20.0
# Each partition has to be created, led and loaded; until then the first requests get retriable errors.
FEW_COORDINATORS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}


@dataclass(frozen=True, slots=True)
class KafkaAddress:
    bootstrap_servers: str
    log_directory: Path


def connect(directory: Path) -> KafkaAddress:
    """The run's Apache Kafka, started if this is the first to ask."""
    note = directory / "note.json"
    with exclusive(directory / "lock"):
        if not note.exists():
            with (directory / "alive").open("rb", buffering=0) as alive:
                kafka = ApacheKafka(FEW_COORDINATORS, directory=directory, stdin=alive)
                kafka.start()
            try:
                await_coordinators(kafka.bootstrap_servers)
            except BaseException:
                kafka.stop()  # the next caller starts another
                raise
            note.write_text(json.dumps([kafka.bootstrap_servers, str(kafka.log_directory), kafka.pid]))
            kafka.leave_running()
        bootstrap_servers, log_directory, _pid = json.loads(note.read_text())
        return KafkaAddress(bootstrap_servers, Path(log_directory))


class SharedKafka:
    """The owner's side: a directory for the workers, and the end of the broker at the end of the run."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="shared-kafka-"))
        os.mkfifo(self.directory / "alive")
        # For reading too, so that opening waits for no reader; not inherited, so that only this process holds it.
        self._alive = os.open(self.directory / "alive", os.O_RDWR)

    def close(self) -> None:
        os.close(self._alive)
        note = self.directory / "note.json"
        if note.exists():
            _bootstrap_servers, _log_directory, pid = json.loads(note.read_text())
            if not _ends(pid, STOP_TIMEOUT_SECONDS):
                os.kill(pid, signal.SIGKILL)
                _ends(pid, STOP_TIMEOUT_SECONDS)
        shutil.rmtree(self.directory, ignore_errors=True)


def _ends(pid: int, timeout_seconds: float) -> bool:
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        try:
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                return True
        except ChildProcessError:  # the child of a worker
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return True
        time.sleep(0.05)  # a poll's pause
    return False
