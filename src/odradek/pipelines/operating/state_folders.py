"""Where the things of a started pipeline are kept: a folder for each name in the user's state folder."""

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
    """The pipelines that were ever started here and whose status is still kept."""
    return sorted(path.parent.name for path in all_folders().glob(f"*/{STATUS}"))
