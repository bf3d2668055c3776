"""docs/recipes.md: `odradek pipeline validate` accepts every definition, without warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.planning.loading import Choices, load_file
from tests.docs.document import DOCS, Writing, actions

if TYPE_CHECKING:
    from pathlib import Path

TEXT = (DOCS / "recipes.md").read_text()
FILES = [each for each in actions(TEXT) if isinstance(each, Writing)]
DEFINITIONS = [each.name for each in FILES if each.name.endswith(".yml")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("recipes")
    for file in FILES:
        file.write(found)
    return found


def problems(file: Path, choices: Choices) -> list[str]:
    found = load_file(str(file), {}, choices=choices)
    return [f"{each.place.line}: {each.text}" for definition in found for each in definition.problems]


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_recipe_is_valid(folder: Path, name: str) -> None:
    assert problems(folder / name, Choices()) == []
    (found,) = load_file(str(folder / name), {})
    assert found.pipeline is not None
    assert f"{found.pipeline.name}.yml" == name


def test_every_definition_of_the_page_is_checked() -> None:
    assert TEXT.count("```yaml\n") == len(DEFINITIONS) > 10
