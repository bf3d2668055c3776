"""A fresh checkout begins with mypy's cache of the last one."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kept_types import keep, take

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def checkout(tmp_path: Path, name: str, content: str) -> Path:
    own = tmp_path / name / ".mypy_cache"
    own.mkdir(parents=True)
    (own / "cache.db").write_text(content)
    return own


def kept_content(tmp_path: Path) -> str:
    fresh = tmp_path / "fresh" / ".mypy_cache"
    fresh.parent.mkdir()
    take(fresh)
    return (fresh / "cache.db").read_text()


def test_a_fresh_checkout_takes_what_the_last_one_kept(tmp_path: Path) -> None:
    for name in ("first", "second"):
        keep(checkout(tmp_path, name, name))
    fresh = tmp_path / ".mypy_cache"
    take(fresh)
    assert (fresh / "cache.db").read_text() == "second"


def test_a_checkout_with_a_cache_keeps_its_own(tmp_path: Path) -> None:
    keep(checkout(tmp_path, "first", "first"))
    own = checkout(tmp_path, "second", "second")
    take(own)
    assert (own / "cache.db").read_text() == "second"


def test_nothing_is_taken_where_nothing_was_kept(tmp_path: Path) -> None:
    take(tmp_path / ".mypy_cache")
    assert not (tmp_path / ".mypy_cache").exists()


def test_a_checkout_without_a_cache_leaves_what_was_kept(tmp_path: Path) -> None:
    keep(checkout(tmp_path, "first", "first"))
    keep(tmp_path / "none")
    assert kept_content(tmp_path) == "first"


def test_a_copy_that_fails_leaves_what_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(checkout(tmp_path, "first", "first"))
    own = checkout(tmp_path, "second", "second")

    def copy_half(source: Path, target: Path) -> None:
        target.mkdir()
        (target / "cache.db").touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copytree", copy_half)
        with pytest.raises(OSError, match="No space left"):
            keep(own)
        with pytest.raises(OSError, match="No space left"):
            take(tmp_path / "third")
    assert not (tmp_path / "third").exists()
    assert kept_content(tmp_path) == "first"


@pytest.mark.parametrize("changed", ["cache.db", "cache.db-journal"])
def test_a_cache_that_another_run_changes_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    keep(checkout(tmp_path, "first", "first"))
    own = checkout(tmp_path, "second", "second")
    copy = shutil.copytree

    def copy_during_a_change(source: Path, target: Path) -> None:
        copy(source, target)
        (own / changed).write_text("more than before")

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copytree", copy_during_a_change)
        keep(own)
    assert kept_content(tmp_path) == "first"


def test_an_interrupted_change_is_not_kept(tmp_path: Path) -> None:
    keep(checkout(tmp_path, "first", "first"))
    own = checkout(tmp_path, "second", "second")
    (own / "cache.db-journal").touch()
    keep(own)
    assert kept_content(tmp_path) == "first"


def test_a_cache_that_appears_during_the_copy_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(checkout(tmp_path, "first", "first"))
    copy = shutil.copytree

    def copy_while_mypy_begins(source: Path, target: Path) -> None:
        copy(source, target)
        checkout(tmp_path, "second", "second")

    monkeypatch.setattr(shutil, "copytree", copy_while_mypy_begins)
    (tmp_path / "second").mkdir()
    with pytest.raises(OSError, match="not empty"):
        take(tmp_path / "second" / ".mypy_cache")
    assert [each.name for each in (tmp_path / "second").iterdir()] == [".mypy_cache"]
    assert (tmp_path / "second" / ".mypy_cache" / "cache.db").read_text() == "second"


@pytest.mark.parametrize("action", ["take", "keep"])
def test_a_cache_that_cannot_be_shared_does_not_fail_the_check(tmp_path: Path, action: str) -> None:
    (tmp_path / "file").touch()
    checkout(tmp_path, ".", "own")
    ended = subprocess.run(
        [sys.executable, "-m", "tests.kept_types", action],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "file")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.startswith("the cache of mypy is not shared: ")
    assert "Traceback" not in ended.stderr
