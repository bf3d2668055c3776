"""Nothing is deleted without an answer."""

from __future__ import annotations

import io

import click
import pytest

from odradek.cli.framework.options import confirm


def test_yes_asks_nothing() -> None:
    confirm("Delete?", is_confirmed=True)


def test_without_a_terminal_yes_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(click.UsageError, match="--yes"):
        confirm("Delete?", is_confirmed=False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_ends_the_command_and_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    with pytest.raises(click.exceptions.Exit) as ended:
        confirm("Delete?", is_confirmed=False)
    assert ended.value.exit_code == 1
    assert capsys.readouterr().err.endswith("nothing was deleted\n")


def test_an_answer_of_yes_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    confirm("Delete?", is_confirmed=False)
