"""The page about pipelines names every kind of declaration, fits its size, and has valid examples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from odradek.pipelines.planning.loading import load_file

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "pipelines.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "language"), [("p.yml", "yaml"), ("rigs.py", "python")])
def test_the_examples_of_the_page_are_sound(tmp_path: Path, name: str, language: str) -> None:
    (tmp_path / name).write_text(re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[0])
    (definition,) = load_file(str(tmp_path / name), {})
    assert definition.problems == ()


def test_the_page_stays_one_to_read() -> None:
    assert PAGE.count("\n") <= 300
