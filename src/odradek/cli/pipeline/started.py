"""Finds the pipelines that were started on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.failures import Failure
from odradek.pipelines.operating.state_folders import started_names
from odradek.pipelines.operating.status_files import read_status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.pipelines.operating.status import PipelineStatus


def statuses(names: Iterable[str]) -> list[PipelineStatus]:
    """Statuses of the named pipelines, or of all; Failure for one that was never started."""
    chosen = list(dict.fromkeys(names))
    known = started_names()
    for name in chosen:
        if name not in known:
            more = f"; started: {', '.join(known)}" if known else ""
            raise Failure(f"no pipeline {name} was started on this machine{more}")
    return [status for name in chosen or known if (status := read_status(name)) is not None]
