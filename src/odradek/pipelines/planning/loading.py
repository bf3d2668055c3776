"""Makes definitions of files: reads them, replaces parameters, parses and checks.

Definitions in YAML and in Python both end in `assembled`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import field
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.decorators import Pipeline as PythonPipeline
from odradek.pipelines.definition.nodes import MappingNode
from odradek.pipelines.definition.parameters import parameters_of
from odradek.pipelines.definition.parsing import parse_pipeline
from odradek.pipelines.definition.places import Place, Problem, ProblemList, Problems
from odradek.pipelines.definition.python_code import import_file
from odradek.pipelines.definition.substituting import Substitution
from odradek.pipelines.definition.yaml_nodes import read_raw_yaml, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.model import Parsed, Pipeline
    from odradek.pipelines.definition.nodes import Node
    from odradek.pipelines.definition.vocabulary import Engine
    from odradek.pipelines.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class Choices:
    """What is chosen outside of the definition, as by `--set` and `--engine`."""

    parameters: Mapping[str, str] = field(default_factory=dict)
    engine: Engine | None = None


NO_CHOICES = Choices()


@dataclass(frozen=True, slots=True)
class Definition:
    """A pipeline, as far as it could be parsed, and all problems found in it; the plan by which it runs."""

    pipeline: Pipeline | None
    problems: tuple[Problem, ...]
    is_sound: bool
    plan: Plan | None = None

    def require(self) -> Pipeline:
        """The pipeline, if it can run; otherwise raises `ProblemList` with all problems."""
        if self.pipeline is None or not self.is_sound:
            raise ProblemList(self.problems)
        return self.pipeline


def load_file(file: str, environment: Mapping[str, str], choices: Choices = NO_CHOICES) -> list[Definition]:
    """The definitions in a file: one in YAML, any number in Python."""
    if file.endswith(".py"):
        return load_python(file, environment, choices)
    return [load_yaml(file, environment, choices)]


def load_yaml(file: str, environment: Mapping[str, str], choices: Choices = NO_CHOICES) -> Definition:
    """The pipeline in a YAML file."""
    problems = Problems()
    text = read_text(file, problems)
    root = None if text is None else read_raw_yaml(text, file, problems)
    return assembled(root, file, environment, problems, choices)


def load_python(file: str, environment: Mapping[str, str], choices: Choices = NO_CHOICES) -> list[Definition]:
    """All pipelines in the file's module, in the order of the file."""
    problems = Problems()
    module = None if read_text(file, problems) is None else import_file(file, problems)
    found = [] if module is None else [each for each in vars(module).values() if isinstance(each, PythonPipeline)]
    if module is not None and not found:
        hint = 'from odradek.pipelines import Pipeline; name = Pipeline("name")'
        problems.error(Place(file, 1, 1), "the file does not define a pipeline", hint)
    defined = [define_python(each, environment, choices) for each in dict.fromkeys(found)]
    return defined or [finished(None, problems)]


def define_python(
    collected: PythonPipeline, environment: Mapping[str, str], choices: Choices = NO_CHOICES
) -> Definition:
    """The pipeline that a Python file has collected."""
    problems = Problems()
    root = collected.tree(problems)
    return assembled(root, root.place.file, environment, problems, choices)


def assembled(
    root: Node | None, file: str, environment: Mapping[str, str], problems: Problems, choices: Choices
) -> Definition:
    """The definition of a tree whose variables are not replaced."""
    if root is None and not problems.errors:
        problems.error(Place(file, 1, 1), "the file is empty", "start with `pipeline: name`")
    whole = root
    if isinstance(root, MappingNode):
        parameters = parameters_of(root, choices.parameters, problems)
        kept = MappingNode(tuple(each for each in root.entries if each[0].text != "parameters"), root.place)
        whole = Substitution(parameters, environment, problems).of(kept)
    return finished(None if whole is None else parse_pipeline(whole, problems), problems, choices)


def finished(parsed: Parsed | None, problems: Problems, choices: Choices = NO_CHOICES) -> Definition:
    """Checks a parsed pipeline, and plans it."""
    if parsed is None:
        return Definition(None, tuple(problems), is_sound=False)
    if choices.engine is not None:
        parsed = dataclasses.replace(parsed, pipeline=dataclasses.replace(parsed.pipeline, engine=choices.engine))
    from odradek.pipelines.planning.rules import checked_definition  # noqa: PLC0415 - a definition that cannot be parsed needs no checks

    plan = checked_definition(parsed, problems)
    return Definition(parsed.pipeline, tuple(problems), is_sound=not problems.errors, plan=plan)
