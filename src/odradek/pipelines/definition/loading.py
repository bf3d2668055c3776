"""A definition from a file: read, understood, checked."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.definition.parsing import Parsed, parse_pipeline
from odradek.pipelines.definition.places import Place, Problem, ProblemList, Problems
from odradek.pipelines.definition.yaml_nodes import read_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.vocabulary import Engine


@dataclass(frozen=True, slots=True)
class Definition:
    """A pipeline as far as it could be read, and all that is wrong with it."""

    pipeline: Pipeline | None
    problems: tuple[Problem, ...]
    is_sound: bool

    def require(self) -> Pipeline:
        """The pipeline, if it can run; otherwise `ProblemList` with all that is wrong."""
        if self.pipeline is None or not self.is_sound:
            raise ProblemList(self.problems)
        return self.pipeline


def load_file(file: str, environment: Mapping[str, str], engine: Engine | None = None) -> list[Definition]:
    """The definitions of a file: one of YAML, any number of Python. `engine` is asked for instead of their own."""
    if not file.endswith(".py"):
        return [load_yaml(file, environment, engine)]
    from odradek.pipelines.definition.python_files import load_python  # noqa: PLC0415 - which builds on this module

    return load_python(file, engine)


def read_text(file: str, problems: Problems) -> str | None:
    try:
        return Path(file).read_bytes().decode()
    except OSError as error:
        problems.error(Place(file, 1, 1), f"the file cannot be read: {error.strerror}", "check the path")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
        problems.error(Place(file, line, column), "the file is not UTF-8", "save it as UTF-8")
    return None


def load_yaml(file: str, environment: Mapping[str, str], engine: Engine | None = None) -> Definition:
    """The pipeline of a YAML file."""
    problems = Problems()
    text = read_text(file, problems)
    return define_yaml(text, file, environment, engine, problems) if text is not None else finished(None, problems)


def define_yaml(
    text: str, file: str, environment: Mapping[str, str], engine: Engine | None, problems: Problems
) -> Definition:
    """The pipeline of a YAML text."""
    root = read_yaml(text, file, environment, problems)
    if root is None:
        if not problems.errors:
            problems.error(Place(file, 1, 1), "the file is empty", "begin with `pipeline: name`")
        return finished(None, problems)
    return finished(parse_pipeline(root, problems), problems, engine)


def finished(parsed: Parsed | None, problems: Problems, engine: Engine | None = None) -> Definition:
    """Checks what was parsed."""
    if parsed is None:
        return Definition(None, tuple(problems), is_sound=False)
    if engine is not None:
        parsed = dataclasses.replace(parsed, pipeline=dataclasses.replace(parsed.pipeline, engine=engine))
    from odradek.pipelines.definition.checks import check_pipeline  # noqa: PLC0415 - what is not YAML needs none

    check_pipeline(parsed, problems)
    return Definition(parsed.pipeline, tuple(problems), is_sound=not problems.errors)
