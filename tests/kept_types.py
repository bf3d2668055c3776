"""mypy's cache of this machine, with which a fresh checkout begins: `python -m tests.kept_types take`, `… keep`.

mypy compares the content of files whose dates differ, and needs 3 s of processor time instead of 40, beside the first
tests.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.jvm.build_cache import cache_directory, exclusive

OWN = Path(".mypy_cache")


def take(own: Path = OWN) -> None:
    """Copies what the last run of any checkout has kept, unless this one has a cache."""
    kept = cache_directory() / "mypy"
    with exclusive(kept.with_suffix(".lock")):
        if kept.exists() and not own.exists():
            shutil.copytree(kept, own)


def keep(own: Path = OWN) -> None:
    kept = cache_directory() / "mypy"
    with exclusive(kept.with_suffix(".lock")):
        made = kept.with_suffix(".new")
        for each in (made, kept):
            shutil.rmtree(each, ignore_errors=True)
        shutil.copytree(own, made)
        made.rename(kept)


if __name__ == "__main__":
    {"take": take, "keep": keep}[sys.argv[1]]()
