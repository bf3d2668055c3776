"""Rewrites the assert statements of all modules once for all workers of pytest-xdist.

pytest rewrites a module when it first imports it, and keeps the result in `__pycache__`. In a fresh checkout the
workers import the same modules at the same time, and each would rewrite all of them, which takes 10 s of processor
time. Here each worker begins with another part of the modules and leaves out those that others have rewritten.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from _pytest.assertion.rewrite import PYC_TAIL, AssertionRewritingHook, _rewrite_test, _write_pyc, assertstate_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

ROOT = Path(__file__).resolve().parent.parent
PATTERNS = ("tests/**/test_*.py", "tests/**/conftest.py")
PACKAGE = "odradek"


def leave_package_as_it_is(config: pytest.Config) -> None:
    """The package has a plugin, for which pytest would rewrite all of its modules: as many lines as the tests have."""
    hook = config.pluginmanager.rewrite_hook
    if isinstance(hook, AssertionRewritingHook):  # there is none with --assert=plain
        hook._must_rewrite.discard(PACKAGE)
        hook._marked_for_rewrite_cache.clear()


def rewrite_modules(config: pytest.Config, worker: int, workers: int, root: Path = ROOT) -> None:
    if sys.dont_write_bytecode:
        return
    for source in in_turn([file for pattern in PATTERNS for file in sorted(root.glob(pattern))], worker, workers):
        kept = kept_file(source)
        if not is_newer(kept, source):
            kept.parent.mkdir(exist_ok=True)
            source_hash, code = _rewrite_test(source, config)
            _write_pyc(config.stash[assertstate_key], code, source_hash, kept)


def kept_file(source: Path) -> Path:
    return source.parent / "__pycache__" / f"{source.stem}{PYC_TAIL}"


def in_turn(files: Sequence[Path], worker: int, workers: int) -> list[Path]:
    """All files, from the first of this worker's part on."""
    first = len(files) * worker // workers
    return [*files[first:], *files[:first]]


def is_newer(kept: Path, source: Path) -> bool:
    """Whether the module need not be rewritten; pytest compares the content when it imports it."""
    try:
        return kept.stat().st_mtime_ns >= source.stat().st_mtime_ns
    except FileNotFoundError:
        return False
