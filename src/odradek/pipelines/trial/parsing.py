"""Finds test files next to the definitions that they test, and parses their cases; reports all problems together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.definition.fields import Fields
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.nodes import ListNode, MappingNode, Node, Scalar, TreeTooLarge, describe, to_plain
from odradek.pipelines.definition.places import Place, ProblemList, Problems
from odradek.pipelines.definition.substituting import read_yaml
from odradek.pipelines.definition.vocabulary import Duration, Engine
from odradek.pipelines.definition.yaml_nodes import read_text
from odradek.pipelines.planning.loading import NO_CHOICES, load_file
from odradek.pipelines.trial.given import check_given
from odradek.pipelines.trial.model import (
    Advance,
    Case,
    CaseFile,
    Check,
    ExpectedCount,
    ExpectedRows,
    GivenBatch,
    Outlet,
    PlacedValue,
    Turn,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.planning.loading import Choices, Definition

TEST_ENDINGS = (".test.yml", ".test.yaml")
DEFINITION_ENDINGS = (".yml", ".yaml", ".py")
FILE_KEYS = ("definition", "pipeline", "cases")
CASE_KEYS = ("given", "expect")
TURN_KEYS = ("sinks", "views", "dead_letters", "expectations")
EXPECT_KEYS = (*TURN_KEYS, "error")
ROWS_KEYS = ("rows", "contains", "count", "in_order", "all_columns")
OUTLETS = {"sinks": Outlet.SINK, "views": Outlet.VIEW}


def find_files(named: Iterable[str]) -> list[str]:
    """Test files, given by their name, by the definition that they test, or by a folder that contains them."""
    return list(dict.fromkeys(file for name in named for file in files_of(name)))


def files_of(name: str) -> Iterator[str]:
    path = Path(name)
    if path.is_dir():
        found = sorted(str(each) for ending in TEST_ENDINGS for each in path.rglob(f"*{ending}"))
        if not found:
            what = "found no pipeline tests in this folder or below"
            raise single_problem(name, what, "the name of a test file ends in .test.yml")
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
    definition = tested_definition(file, fields, environment, problems, choices)
    if definition is None:
        raise ProblemList(problems)
    pipeline = definition.require()
    cases = parse_cases(root, pipeline, problems)
    for case in cases:
        check_given(case.batches, pipeline, problems)
    if problems.errors:
        raise ProblemList(problems)
    assert definition.plan is not None
    return CaseFile(file, definition.plan, cases)


def tested_definition(
    file: str, fields: Fields, environment: Mapping[str, str], problems: Problems, choices: Choices
) -> Definition | None:
    """The named definition, or the one with the test file's name."""
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
    chosen = [each for each in found if name in {None, each.require().name}]
    if len(chosen) == 1:
        return chosen[0]
    names = ", ".join(each.require().name for each in found)
    problems.error(fields.place_of("pipeline"), f"{definition} defines {names}", "choose one with `pipeline: name`")
    return None


def single_problem(name: str, message: str, hint: str) -> ProblemList:
    problems = Problems()
    problems.error(Place(name, 1, 1), message, hint)
    return ProblemList(problems)


def parse_cases(root: MappingNode, pipeline: Pipeline, problems: Problems) -> tuple[Case, ...]:
    """Parses the cases for a pipeline."""
    node = root.get("cases")
    if not isinstance(node, MappingNode) or not node.entries:
        place, found = (root.place, "there are none") if node is None else (node.place, f"not {describe(node)}")
        hint = "write cases: {name: {given: …, expect: …}}"
        problems.error(place, f"cases must be a mapping of names, {found}", hint)
        return ()
    parser = CaseParser(pipeline, problems)
    return tuple(parser.case(key, value) for key, value in node.entries)


class CaseParser:
    """Parses the cases of one pipeline, and checks names against it."""

    def __init__(self, pipeline: Pipeline, problems: Problems) -> None:
        self._pipeline = pipeline
        self._problems = problems
        self._sources = [each.name for each in pipeline.sources]
        self._names = {
            Outlet.SINK: [each.name for each in pipeline.sinks],
            Outlet.VIEW: [each.name for each in pipeline.views],
        }

    def case(self, key: Scalar, node: Node) -> Case:
        what = f"case '{key.text}'"
        fields = Fields(node, CASE_KEYS, what, self._problems)
        given = fields.node("given")
        items = given.items if isinstance(given, ListNode) else None
        turns = [self._batch(given)] if items is None else [self._turn(each, what) for each in items]
        if "expect" not in fields:
            fields.missing("expect", "expect: {sinks: {name: [rows]}}")
            return Case(key.text, key.place, tuple(turns))
        expect = self._expect(fields.node("expect") or node, what, EXPECT_KEYS)
        text = expect.text("error")
        error = None if text is None else PlacedValue(text, expect.place_of("error"))
        return Case(key.text, key.place, (*turns, self._check(expect)), items is None, error)

    def _turn(self, node: Node, what: str) -> Turn:
        """One item of a list under `given`."""
        names = [key.text for key, _ in node.entries] if isinstance(node, MappingNode) else []
        if names == ["advance"]:
            fields = Fields(node, ("advance",), f"given of {what}", self._problems)
            if self._pipeline.engine is Engine.BATCH:
                message = f"{what} advances the time, and the batch engine runs once"
                self._problems.error(node.place, message, "remove advance, or use engine: standard")
            return Advance(fields.duration("advance") or Duration(0), node.place)
        if names == ["expect"] and isinstance(node, MappingNode):
            return self._check(self._expect(node.entries[0][1], what, TURN_KEYS))
        return self._batch(node)

    def _batch(self, node: Node | None) -> GivenBatch:
        rows = {
            name.text: self._list(value, f"rows given to '{name.text}'")
            for name, value in self._entries(node, "given")
            if self._is_known(name, self._sources, "source")
        }
        return GivenBatch(rows)

    def _expect(self, node: Node, what: str, known: Sequence[str]) -> Fields:
        if isinstance(node, MappingNode) and not node.entries:
            self._problems.error(node.place, f"{what} expects nothing", f"add one of {', '.join(known)}")
        return Fields(node, known, f"expect of {what}", self._problems)

    def _check(self, expect: Fields) -> Check:
        return Check(tuple(self._all_rows(expect)), tuple(self._counts(expect.node("expectations"))))

    def _all_rows(self, expect: Fields) -> Iterator[ExpectedRows]:
        for key, outlet in OUTLETS.items():
            for name, value in self._entries(expect.node(key), key):
                if self._is_known(name, self._names[outlet], str(outlet)):
                    yield self._rows(outlet, name.text, value)
        letters = expect.node("dead_letters")
        if letters is None:
            return
        if self._pipeline.dead_letters is None:
            what, hint = "the pipeline has no dead-letter topic", "add `dead_letters: topic` to it"
            self._problems.error(expect.key_place("dead_letters"), what, hint)
        yield self._rows(Outlet.DEAD_LETTERS, "", letters)

    def _rows(self, outlet: Outlet, name: str, node: Node) -> ExpectedRows:
        """Expected rows: a list, or a mapping with more conditions."""
        what = f"{outlet} '{name}'" if name else str(outlet)
        if not isinstance(node, MappingNode):
            return ExpectedRows(outlet, name, node.place, self._list(node, f"rows of {what}"))
        fields = Fields(node, ROWS_KEYS, what, self._problems)
        if "count" not in fields or ("rows" in fields and "contains" in fields):
            fields.chosen(("rows", "contains"))
        key = "contains" if "contains" in fields else "rows"
        found, number = fields.node(key), fields.node("count")
        rows = None if found is None else self._list(found, f"{key} of {what}")
        count = None if number is None else self._number(number, f"count of {what}")
        in_order, all_columns = fields.flag("in_order", False), fields.flag("all_columns", False)
        return ExpectedRows(outlet, name, node.place, rows, count, key == "contains", in_order, all_columns)

    def _counts(self, node: Node | None) -> Iterator[ExpectedCount]:
        expectations = {step.name: [each.name for each in step.expectations] for step in self._pipeline.steps}
        judged = [name for name, found in expectations.items() if found]
        for step, of_step in self._entries(node, "expectations"):
            if not self._is_known(step, judged, "step with expectations"):
                continue
            for name, count in self._entries(of_step, f"expectations of '{step.text}'"):
                if self._is_known(name, expectations[step.text], f"expectation of step '{step.text}'"):
                    number = self._number(count, f"'{name.text}' of step '{step.text}'")
                    yield ExpectedCount(step.text, name.text, number, name.place)

    def _entries(self, node: Node | None, what: str) -> Sequence[tuple[Scalar, Node]]:
        if node is None:
            return ()
        if isinstance(node, MappingNode):
            return node.entries
        self._problems.error(node.place, f"{what} must be a mapping of names, not {describe(node)}")
        return ()

    def _list(self, node: Node, what: str) -> tuple[PlacedValue, ...]:
        if isinstance(node, ListNode):
            return tuple(PlacedValue(self._plain(item), item.place) for item in node.items)
        self._problems.error(node.place, f"{what} must be a list, not {describe(node)}", "write - {column: value}")
        return ()

    def _plain(self, node: Node) -> object:
        try:
            return to_plain(node)
        except TreeTooLarge:
            self._problems.error(node.place, "the row is too large", "use smaller values")
            return None

    def _number(self, node: Node, what: str) -> int:
        if isinstance(node, Scalar) and type(node.value) is int and node.value >= 0:
            return node.value
        self._problems.error(node.place, f"{what} must be an integer, not {describe(node)}")
        return 0

    def _is_known(self, name: Scalar, known: Sequence[str], what: str) -> bool:
        if name.text in known:
            return True
        hint = suggestion(name.text, known, what="there is") or f"the pipeline has no {what}"
        self._problems.error(name.place, f"the pipeline has no {what} '{name.text}'", hint)
        return False
