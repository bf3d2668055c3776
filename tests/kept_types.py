"""mypy's cache of this machine, with which a fresh checkout begins: `python -m tests.kept_types take`, `… keep`.

mypy compares the content of files whose dates differ, and needs 3 s of processor time instead of 40, beside the first
tests. Without a directory that can be written, mypy runs without the kept cache.
"""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.jvm.build_cache import cache_directory, exclusive

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN = Path(".mypy_cache")
UNCOMMITTED = ("-journal", "-wal")  # files of SQLite beside a database that is being changed


def take(own: Path = OWN) -> None:
    """Copies what the last run of any checkout has kept, unless this one has a cache."""
    kept = cache_directory() / "mypy"
    with exclusive(kept.with_suffix(".lock")):
        if kept.exists() and not own.exists():
            with _copy_of(kept, own.with_name(f"{own.name}.new")) as made:
                made.rename(own)


def keep(own: Path = OWN) -> None:
    """Replaces the kept cache, unless another run changes the one of this checkout: half a change is no cache."""
    if not own.is_dir():
        return
    kept = cache_directory() / "mypy"
    with exclusive(kept.with_suffix(".lock")):
        before = _files(own)
        with _copy_of(own, kept.with_suffix(".new")) as made:
            if any(name.endswith(UNCOMMITTED) for name in before) or _files(own) != before:
                return
            replaced = kept.with_suffix(".old")
            shutil.rmtree(replaced, ignore_errors=True)
            if kept.exists():
                kept.rename(replaced)
            made.rename(kept)
            shutil.rmtree(replaced, ignore_errors=True)


@contextmanager
def _copy_of(directory: Path, made: Path) -> Iterator[Path]:
    """A complete copy, which the caller renames; otherwise it is removed."""
    shutil.rmtree(made, ignore_errors=True)
    try:
        shutil.copytree(directory, made)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _files(directory: Path) -> dict[str, tuple[int, int]]:
    """Sizes and times of change."""
    states = {str(file): file.stat() for file in directory.rglob("*")}
    return {name: (state.st_size, state.st_mtime_ns) for name, state in states.items()}


def main(action: str) -> None:
    try:
        {"take": take, "keep": keep}[action]()
    except (OSError, RuntimeError) as problem:  # RuntimeError: the user has no home
        print(f"the cache of mypy is not shared: {problem}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
