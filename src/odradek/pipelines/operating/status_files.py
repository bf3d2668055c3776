"""The status file of a started pipeline, which is replaced atomically."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.pipelines.operating.processes import ProcessMark
from odradek.pipelines.operating.state_folders import STATUS, folder_of
from odradek.pipelines.operating.status import ENDED, PipelineStatus, State

if TYPE_CHECKING:
    from pathlib import Path


def replace_file(path: Path, text: str) -> None:
    """Replaces a file atomically: readers see the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def write_status(folder: Path, status: PipelineStatus) -> None:
    replace_file(folder / STATUS, json.dumps(status.as_object()))


def read_status(name: str) -> PipelineStatus | None:
    """The last status; DIED if its process has ended without a final status. None if there is no status file."""
    try:
        found = PipelineStatus.of_object(json.loads((folder_of(name) / STATUS).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
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
    (folder_of(name) / STATUS).unlink(missing_ok=True)


def remove_failed_status(name: str) -> None:
    """Removes the status of a started pipeline that has failed or died; for use after a later run has succeeded."""
    found = read_status(name)
    if found is not None and found.state in {State.FAILED, State.DIED}:
        remove_status(name)
