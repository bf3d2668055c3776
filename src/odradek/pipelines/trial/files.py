"""Finds test files next to the definitions that they test, and reads both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.definition.choices import NO_CHOICES
from odradek.pipelines.definition.fields import Fields
from odradek.pipelines.definition.loading import load_file
from odradek.pipelines.definition.nodes import MappingNode, describe
from odradek.pipelines.definition.places import Place, ProblemList, Problems
from odradek.pipelines.definition.substituting import read_yaml
from odradek.pipelines.definition.text_files import read_text
from odradek.pipelines.trial.given import check_given
from odradek.pipelines.trial.model import CaseFile
from odradek.pipelines.trial.parsing import FILE_KEYS, parse_cases

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from odradek.pipelines.definition.choices import Choices
    from odradek.pipelines.definition.model import Pipeline

TEST_ENDINGS = (".test.yml", ".test.yaml")
DEFINITION_ENDINGS = (".yml", ".yaml", ".py")


def find_files(named: Iterable[str]) -> list[str]:
    """Test files, given by their name, by the definition that they test, or by a folder that contains them."""
    return list(dict.fromkeys(file for name in named for file in files_of(name)))


def files_of(name: str) -> Iterator[str]:
    path = Path(name)
    if path.is_dir():
        found = sorted(str(each) for ending in TEST_ENDINGS for each in path.rglob(f"*{ending}"))
        if not found:
            raise single_problem(
                name, "found no pipeline tests in this folder or below", "the name of a test file ends in .test.yml"
            )
        yield from found
    elif name.endswith(TEST_ENDINGS):
        yield name
    else:
        candidates = [path.with_suffix(ending) for ending in TEST_ENDINGS]
        existing = [str(each) for each in candidates if each.exists()]
        if not existing:
            raise single_problem(name, "this definition has no test file", f"write one: {candidates[0]}")
        yield existing[0]


def read_case_file(file: str, environment: Mapping[str, str], choices: Choices = NO_CHOICES) -> CaseFile:
    """The cases of a file and the pipeline that they test; raises `ProblemList` with the problems of both."""
    problems = Problems()
    text = read_text(file, problems)
    root = read_yaml(text, file, environment, problems) if text is not None else None
    if not isinstance(root, MappingNode):
        if not problems.errors:
            what = "empty" if root is None else f"not {describe(root)}"
            problems.error(Place(file, 1, 1), f"a test file must be a mapping, {what}", "start with `cases:`")
        raise ProblemList(problems)
    fields = Fields(root, FILE_KEYS, "the test file", problems)
    pipeline = tested_pipeline(file, fields, environment, problems, choices)
    if pipeline is None:
        raise ProblemList(problems)
    cases = parse_cases(root, pipeline, problems)
    for case in cases:
        check_given(case.batches, pipeline, problems)
    if problems.errors:
        raise ProblemList(problems)
    return CaseFile(file, pipeline, cases)


def tested_pipeline(
    file: str, fields: Fields, environment: Mapping[str, str], problems: Problems, choices: Choices
) -> Pipeline | None:
    """The pipeline of the named definition, or of the one with the test file's name."""
    named, name = fields.text("definition"), fields.text("pipeline")
    if named is not None:
        definition = Path(file).parent / named
    else:
        stem = next(file.removesuffix(ending) for ending in TEST_ENDINGS if file.endswith(ending))
        candidates = [Path(stem + ending) for ending in DEFINITION_ENDINGS]
        definition = next((each for each in candidates if each.exists()), candidates[0])
    if not definition.exists():
        hint = "name it with `definition: file`" if named is None else "relative paths start at the test file's folder"
        problems.error(fields.place_of("definition"), f"the definition {definition} does not exist", hint)
        return None
    found = load_file(str(definition), environment, choices=choices)
    for each in found:
        if not each.is_sound:
            raise ProblemList(each.problems)
    pipelines = [each.pipeline for each in found if each.pipeline is not None]
    chosen = [each for each in pipelines if name in {None, each.name}]
    if len(chosen) == 1:
        return chosen[0]
    names = ", ".join(each.name for each in pipelines)
    problems.error(fields.place_of("pipeline"), f"{definition} defines {names}", "choose one with `pipeline: name`")
    return None


def single_problem(name: str, message: str, hint: str) -> ProblemList:
    problems = Problems()
    problems.error(Place(name, 1, 1), message, hint)
    return ProblemList(problems)
