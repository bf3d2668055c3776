"""Kafka's TransactionalMessageCopier as a process: copies a partition in transactions, some of which it aborts."""

from __future__ import annotations

import subprocess
from typing import IO, TYPE_CHECKING

from tests.jvm.jars import java_command

if TYPE_CHECKING:
    from pathlib import Path

MAIN = "org.apache.kafka.tools.TransactionalMessageCopier"
TRANSACTION_TIMEOUT_MS = 10_000


class MessageCopier:
    """Restarted, it continues at the offset of its last committed transaction and ends at the end of its partition."""

    def __init__(self, servers: str, topics: tuple[str, str], partition: int, transaction_size: int, log: Path) -> None:
        self._command = java_command(
            MAIN, "--broker-list", servers, "--input-topic", topics[0], "--output-topic", topics[1],
            "--input-partition", str(partition), "--transactional-id", f"copier-{topics[0]}-{partition}",
            "--consumer-group", f"copiers-{topics[0]}", "--transaction-size", str(transaction_size),
            "--transaction-timeout", str(TRANSACTION_TIMEOUT_MS), "--enable-random-aborts", "--use-group-metadata",
        )  # fmt: skip
        self._log: IO[bytes] = log.open("ab")
        self._process = self._start()
        self.kills = 0

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT)

    @property
    def is_done(self) -> bool:
        return self._process.poll() == 0

    def start_again_if_failed(self) -> None:
        """As a supervisor does: the copier ends with an error when its transaction has timed out."""
        if self._process.poll() not in (None, 0):
            self._process = self._start()

    def kill_and_start(self) -> None:
        if self._process.poll() is None:
            self.kill()
            self.kills += 1
            self._process = self._start()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.kill()
        self._log.close()
