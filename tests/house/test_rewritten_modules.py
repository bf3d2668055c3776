"""Each worker rewrites another part of the modules first, and all of them in the end."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from _pytest.assertion.rewrite import AssertionRewritingHook

from tests.rewritten_modules import in_turn, kept_file, rewrite_modules

if TYPE_CHECKING:
    import pytest

FILES = [Path(f"{number}.py") for number in range(10)]


def test_workers_begin_at_different_modules_and_come_to_all() -> None:
    turns = [in_turn(FILES, worker, 4) for worker in range(4)]
    assert [turn[0] for turn in turns] == [FILES[0], FILES[2], FILES[5], FILES[7]]
    assert all(sorted(turn) == FILES for turn in turns)


def test_only_what_is_missing_is_rewritten(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    (tmp_path / "tests" / "log").mkdir(parents=True)
    sources = [tmp_path / "tests" / "conftest.py", tmp_path / "tests" / "log" / "test_first.py"]
    for source in sources:
        source.write_text("assert 1 == 1\n")
    rewrite_modules(pytestconfig, 0, 1, tmp_path)
    first, second = map(kept_file, sources)
    first.unlink()
    second.write_bytes(b"as it was")
    rewrite_modules(pytestconfig, 0, 1, tmp_path)
    assert first.stat().st_size > 0
    assert second.read_bytes() == b"as it was"


def test_modules_of_the_package_are_not_rewritten_and_those_of_tests_are(pytestconfig: pytest.Config) -> None:
    """Of the package, those that are imported after the start: a conftest that is named to pytest comes before it."""
    hook = pytestconfig.pluginmanager.rewrite_hook
    assert isinstance(hook, AssertionRewritingHook)
    package = import_module("odradek.log").__path__
    assert hook.find_spec("odradek.log.segment", list(package)) is None
    own = sys.modules[__name__].__spec__
    assert own is not None
    assert isinstance(own.loader, AssertionRewritingHook)
