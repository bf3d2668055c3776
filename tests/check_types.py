"""Runs mypy with one cache for all checkouts of this machine: `python -m tests.check_types`.

mypy compares the content of files whose dates differ: a fresh checkout takes 3 s of processor time instead of 60.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys

from tests.jvm.build_cache import cache_directory, exclusive


def main() -> int:
    """The exit code of mypy. Without a directory that can be written, it uses the cache of this checkout."""
    command = [sys.executable, "-m", "mypy"]
    with contextlib.ExitStack() as locked:
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: the user has no home
            locked.enter_context(exclusive(cache_directory() / "mypy.lock"))
            command.append(f"--cache-dir={cache_directory() / 'mypy'}")
        return subprocess.call(command)


if __name__ == "__main__":
    sys.exit(main())
