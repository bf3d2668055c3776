"""Reads the text of a definition's files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.definition.places import Place

if TYPE_CHECKING:
    from odradek.pipelines.definition.places import Problems


def read_text(file: str, problems: Problems) -> str | None:
    try:
        return Path(file).read_bytes().decode()
    except OSError as error:
        problems.error(Place(file, 1, 1), f"the file cannot be read: {error.strerror}", "check the path")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
        problems.error(Place(file, line, column), "the file is not UTF-8", "save it as UTF-8")
    return None
