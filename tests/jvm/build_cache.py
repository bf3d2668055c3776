"""What tests fetch or build once and keep between runs: a directory per tool under the user's cache, guarded by a file
lock because several pytest workers ask for the same thing at the same moment.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

# Replaced by conftest: pytest captures the output of fixtures.
announcing: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext


def announce(line: str) -> None:
    with announcing():
        print(f"\n{line}", file=sys.stderr, flush=True)


def cache_directory() -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odradek"
    root.mkdir(parents=True, exist_ok=True)
    return root


@contextlib.contextmanager
def exclusive(lock_path: Path) -> Iterator[None]:
    """Hold `lock_path` against every other process (and against other descriptors of this one)."""
    lock_path.parent.mkdir(parents=True, exist_ok=True)
    with lock_path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def content_digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def build_once(directory: Path, sources: Iterable[Path], build: Callable[[Path], None]) -> Path:
    """`directory`, filled by `build` unless an earlier run filled it from the same sources."""
    digest = content_digest(sources)
    with exclusive(directory.with_name(directory.name + ".lock")):
        mark = directory / ".done"
        if not (mark.exists() and mark.read_text() == digest):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            announce(f"preparing {directory}, once for this machine")
            began_s = time.monotonic()
            build(directory)
            announce(f"prepared {directory} in {time.monotonic() - began_s:.0f} s")
            mark.write_text(digest)
    return directory
