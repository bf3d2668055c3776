"""Small text files: of any folder, local or on shared storage, and the status files of started pipelines.

A started pipeline has one folder in the user's state folder, with its status, log and lock.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from odradek.pipelines.operating.processes import ProcessMark
from odradek.pipelines.operating.status import ENDED, PipelineStatus, State, decoded

STATUS, LOG, LOCK = "status.json", "log", "lock"


class SmallFiles(Protocol):
    """Reads and writes whole files by their path below a folder."""

    def read(self, name: str) -> str | None:
        """The text of a file; None if it does not exist."""

    def replace(self, name: str, text: str) -> None:
        """Writes a file, whether it exists or not."""

    def remove(self, name: str) -> None:
        """Removes a file if it exists."""

    def has(self, name: str) -> bool:
        """Whether a file or folder exists."""


class LocalFiles:
    """Files of a local folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> str | None:
        try:
            return (self._folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def replace(self, name: str, text: str) -> None:
        """Replaces the file atomically: readers see the old text or the new one."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        try:
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(path)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise

    def remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)

    def has(self, name: str) -> bool:
        return (self._folder / name).exists()


def all_folders() -> Path:
    root = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(root) / "odradek" / "pipelines"


def folder_of(name: str) -> Path:
    return all_folders() / name


def started_names() -> list[str]:
    """Names of the started pipelines that have a status file."""
    return sorted(path.parent.name for path in all_folders().glob(f"*/{STATUS}"))


def write_status(folder: Path, status: PipelineStatus) -> None:
    LocalFiles(folder).replace(STATUS, json.dumps(status.as_object()))


def read_status(name: str) -> PipelineStatus | None:
    """The last status; DIED if its process has ended without a final status. None if there is no status file."""
    try:
        found: PipelineStatus = decoded(PipelineStatus, json.loads(LocalFiles(folder_of(name)).read(STATUS) or ""))
    except (ValueError, KeyError, TypeError):
        return None
    is_gone = found.state not in ENDED and not mark_in(found).is_alive
    return replace(found, state=State.DIED) if is_gone else found


def mark_in(status: PipelineStatus) -> ProcessMark:
    return ProcessMark(status.pid, status.began)


def attempt_in(status: PipelineStatus) -> ProcessMark | None:
    """The current child process, which leads a process group."""
    return None if status.attempt_pid is None else ProcessMark(status.attempt_pid, status.attempt_began)


def remove_status(name: str) -> None:
    """Removes the status file; the log and the checkpoints stay."""
    LocalFiles(folder_of(name)).remove(STATUS)


def remove_failed_status(name: str) -> None:
    """Removes the status of a started pipeline that has failed or died; for use after a later run has succeeded."""
    found = read_status(name)
    if found is not None and found.state in {State.FAILED, State.DIED}:
        remove_status(name)
