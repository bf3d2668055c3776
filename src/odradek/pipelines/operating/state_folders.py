"""The files of started pipelines: one folder per pipeline in the user's state folder."""

from __future__ import annotations

import os
from pathlib import Path

STATUS = "status.json"
LOG = "log"
LOCK = "lock"


def all_folders() -> Path:
    root = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(root) / "odradek" / "pipelines"


def folder_of(name: str) -> Path:
    return all_folders() / name


def started_names() -> list[str]:
    """Names of the started pipelines that have a status file."""
    return sorted(path.parent.name for path in all_folders().glob(f"*/{STATUS}"))
