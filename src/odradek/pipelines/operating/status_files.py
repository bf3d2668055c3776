"""The status of a started pipeline on disk: written whole or not at all, read by whoever asks."""

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


def write_whole(path: Path, text: str) -> None:
    """Readers see the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def write_status(folder: Path, status: PipelineStatus) -> None:
    write_whole(folder / STATUS, json.dumps(status.as_object()))


def read_status(name: str) -> PipelineStatus | None:
    """As it was written last; a process that is gone without having said so has died. None where there is nothing."""
    try:
        found = PipelineStatus.of_object(json.loads((folder_of(name) / STATUS).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    is_gone = found.state not in ENDED and not mark_in(found).is_alive
    return replace(found, state=State.DIED) if is_gone else found


def mark_in(status: PipelineStatus) -> ProcessMark:
    return ProcessMark(status.pid, status.began)


def attempt_in(status: PipelineStatus) -> ProcessMark | None:
    """The process in which it runs just now, of a group of its own."""
    return None if status.attempt_pid is None else ProcessMark(status.attempt_pid, status.attempt_began)
