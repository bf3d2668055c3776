"""A server in a child process: what brokers and ZooKeeper have in common."""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from typing import Self

from odradek.local.child_process import ChildProcess


class RunningServer(ABC):
    """A server in its own process. Its data is in the given directory, or in a temporary one that `close` removes. It
    stops when this process ends, even if it is killed."""

    def __init__(self, data_directory: str | None, prefix: str) -> None:
        self._temporary = None if data_directory is not None else tempfile.mkdtemp(prefix=prefix)
        self._child = ChildProcess()

    @abstractmethod
    def start(self) -> Self:
        """Start the process and wait until it is ready."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the process, and wait for its end."""

    def close(self) -> None:
        """Stop the server and remove the temporary directory."""
        try:
            self.stop()
        finally:
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_exception: object) -> None:
        self.close()
