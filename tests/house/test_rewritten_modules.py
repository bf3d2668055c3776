"""Each worker rewrites another part of the modules first, and all of them in the end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests import rewritten_modules
from tests.rewritten_modules import PYC_TAIL, in_turn, rewrite_modules

if TYPE_CHECKING:
    import pytest

FILES = [Path(f"{number}.py") for number in range(10)]


def test_workers_begin_at_different_modules_and_come_to_all() -> None:
    turns = [in_turn(FILES, worker, 4) for worker in range(4)]
    assert [turn[0] for turn in turns] == [FILES[0], FILES[2], FILES[5], FILES[7]]
    assert all(sorted(turn) == FILES for turn in turns)


def test_only_what_is_missing_or_old_is_rewritten(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewritten_modules, "FOLDERS", (tmp_path,))
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text("assert 1 == 1\n")
    second.write_text("assert 2 == 2\n")
    rewrite_modules(pytestconfig, 0, 1)
    kept = [tmp_path / "__pycache__" / f"{name}{PYC_TAIL}" for name in ("first", "second")]
    assert all(file.stat().st_size > 0 for file in kept)
    for file in kept:
        file.write_bytes(b"as it was")
    kept[0].unlink()
    rewrite_modules(pytestconfig, 0, 1)
    assert kept[0].read_bytes() != kept[1].read_bytes() == b"as it was"
