"""How the command names itself in advice that is to be copied."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from odradek.local.child_process import command_name

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An `odradek` in `.venv/bin` of the present directory, running, and not on PATH."""
    path = tmp_path / ".venv" / "bin" / "odradek"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "argv", [str(path)])
    return path


def test_a_command_that_the_shell_finds_is_named_as_it_is(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(installed.parent))
    assert command_name() == "odradek"


def test_else_its_path_from_here(installed: Path) -> None:
    assert command_name() == ".venv/bin/odradek"


def test_beside_it_a_bare_name_would_not_be_found(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(installed.parent)
    assert command_name() == "./odradek"


def test_python_dash_m_names_the_command_beside_the_interpreter(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/odradek/__main__.py"])
    monkeypatch.setattr(sys, "executable", str(installed.parent / "python"))
    assert command_name() == ".venv/bin/odradek"


def test_where_none_is_installed_the_interpreter_runs_it(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed.unlink()
    monkeypatch.setattr(sys, "executable", str(installed.parent / "python"))
    assert command_name() == ".venv/bin/python -m odradek"
