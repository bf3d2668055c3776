"""All checkouts of a machine share mypy's cache, where there is a directory for it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.check_types import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_cache_is_shared_if_it_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def call(command: list[str]) -> int:
        commands.append(command)
        return 3

    monkeypatch.setattr(subprocess, "call", call)
    (tmp_path / "file").touch()
    for cache in ("cache", "file"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / cache))
        assert main() == 3
    mypy = [sys.executable, "-m", "mypy"]
    assert commands == [[*mypy, f"--cache-dir={tmp_path}/cache/odradek/mypy"], mypy]
