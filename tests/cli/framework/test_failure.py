"""One prefix for all errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.cli.framework.output import report_error
from odradek.conventions.failures import without_prefix

if TYPE_CHECKING:
    import pytest


def test_an_error_is_one_line_with_the_prefix(capsys: pytest.CaptureFixture[str]) -> None:
    report_error("it\n  broke")
    assert capsys.readouterr() == ("", "odradek: error: it broke\n")


def test_the_prefix_of_another_process_is_removed() -> None:
    assert without_prefix("odradek: error: it broke") == "it broke"
    assert without_prefix("it broke") == "it broke"
