"""The reference of pipelines names every key, and its examples are valid."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from odradek.pipelines.definition.keys import FUNCTION, PIPELINE, SINK, SOURCE, STEP, VIEW
from odradek.pipelines.definition.loading import load_file, load_python, load_yaml

PLANNED = Path(__file__).resolve().parents[3] / "docs" / "pipelines-planned.md"
REFERENCE = (Path(__file__).resolve().parents[3] / "docs" / "pipelines.md").read_text()
SECTIONS = {title.split("\n")[0]: title for title in REFERENCE.split("\n## ")}


@pytest.mark.parametrize(
    ("section", "keys"),
    [
        ("The pipeline", PIPELINE.names),
        ("Sources", SOURCE.names),
        ("Steps", STEP.names),
        ("Sinks", SINK.names),
        ("Views", VIEW.names),
        ("Functions", FUNCTION.names),
    ],
)
def test_every_key_is_in_its_section(section: str, keys: tuple[str, ...]) -> None:
    missing = [key for key in keys if not re.search(rf"[`{{ ,]{key}[`:,}}]", SECTIONS[section])]
    assert not missing


def test_the_examples_are_sound(tmp_path: Path) -> None:
    yaml_text, *_recipes = re.findall(r"```yaml\n(.*?)```", REFERENCE, re.DOTALL)
    (tmp_path / "pipeline.yml").write_text(yaml_text)
    assert load_yaml(str(tmp_path / "pipeline.yml"), {}).problems == ()
    blocks = re.findall(r"```python\n(.*?)```", REFERENCE, re.DOTALL)
    (python_text,) = (block for block in blocks if "Pipeline(" in block)
    for block in blocks:
        ast.parse(block)
    (tmp_path / "example.py").write_text(python_text)
    (definition,) = load_python(str(tmp_path / "example.py"))
    assert definition.problems == ()


def test_the_examples_of_the_rules_are_sound(tmp_path: Path) -> None:
    page = PLANNED.read_text()
    assert page.count("\n") <= 300
    (tmp_path / "p.yml").write_text(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0])
    (tmp_path / "rigs.py").write_text(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0])
    for name in ("p.yml", "rigs.py"):
        (definition,) = load_file(str(tmp_path / name), {"ODRADEK_PIPELINES": "new"})
        assert definition.problems == ()
