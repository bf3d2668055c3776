"""Streams of files for tests, in which each file is one micro-batch."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def seconds_after_noon(seconds: float) -> str:
    return (NOON + timedelta(seconds=seconds)).isoformat()


def give_files(folder: Path, batches: Sequence[Iterable[dict[str, Any]]]) -> None:
    """Writes a file for each batch; Spark reads them in the order of their times."""
    folder.mkdir()
    for number, rows in enumerate(batches):
        file = folder / f"{number}.json"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
