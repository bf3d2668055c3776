"""Reads, parses and checks the definitions of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.assembling import assembled
from odradek.pipelines.definition.checked import Definition, finished
from odradek.pipelines.definition.choices import NO_CHOICES
from odradek.pipelines.definition.places import Place, Problems
from odradek.pipelines.definition.text_files import read_text
from odradek.pipelines.definition.yaml_nodes import read_raw_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.choices import Choices
    from odradek.pipelines.definition.vocabulary import Engine


def load_file(
    file: str, environment: Mapping[str, str], engine: Engine | None = None, choices: Choices = NO_CHOICES
) -> list[Definition]:
    """The definitions in a file: one in YAML, any number in Python. `engine` overrides theirs."""
    if not file.endswith(".py"):
        return [load_yaml(file, environment, engine, choices)]
    from odradek.pipelines.definition.python_files import load_python  # noqa: PLC0415 - YAML needs no import machinery

    return load_python(file, engine, environment, choices)


def load_yaml(
    file: str, environment: Mapping[str, str], engine: Engine | None = None, choices: Choices = NO_CHOICES
) -> Definition:
    """The pipeline in a YAML file."""
    problems = Problems()
    text = read_text(file, problems)
    if text is None:
        return finished(None, problems)
    return define_yaml(text, file, environment, engine, problems, choices)


def define_yaml(
    text: str,
    file: str,
    environment: Mapping[str, str],
    engine: Engine | None,
    problems: Problems,
    choices: Choices = NO_CHOICES,
) -> Definition:
    """The pipeline in a YAML text."""
    root = read_raw_yaml(text, file, problems)
    if root is None:
        if not problems.errors:
            problems.error(Place(file, 1, 1), "the file is empty", "start with `pipeline: name`")
        return finished(None, problems)
    return assembled(root, environment, problems, engine, choices)
