"""A fresh checkout begins with mypy's cache of the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.kept_types import keep, take

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def checkout(tmp_path: Path, name: str, content: str) -> Path:
    own = tmp_path / name / ".mypy_cache"
    own.mkdir(parents=True)
    (own / "cache.db").write_text(content)
    return own


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
