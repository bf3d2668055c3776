"""Files that only their owner may read: they hold passwords and keys."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700


def write_private(path: Path, text: str) -> None:
    """Replace the file at once; it never exists with another mode."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    temporary.replace(path)


def make_private_directory(path: Path) -> None:
    path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
