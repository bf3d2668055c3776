"""Parses cases from a YAML file; reports all problems together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.fields import Fields
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.nodes import ListNode, MappingNode, Node, Scalar, TreeTooLarge, describe, to_plain
from odradek.pipelines.definition.vocabulary import Duration, Engine
from odradek.pipelines.trial.model import (
    Advance,
    Case,
    Check,
    ExpectedCount,
    ExpectedRows,
    GivenBatch,
    Outlet,
    PlacedValue,
    Turn,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Problems

FILE_KEYS = ("definition", "pipeline", "cases")
CASE_KEYS = ("given", "expect")
TURN_KEYS = ("sinks", "views", "steps", "dead_letters", "expectations")
EXPECT_KEYS = (*TURN_KEYS, "error")
ROWS_KEYS = ("rows", "contains", "count", "in_order", "all_columns")
OUTLETS = {"sinks": Outlet.SINK, "views": Outlet.VIEW, "steps": Outlet.STEP}


def parse_cases(root: MappingNode, pipeline: Pipeline, problems: Problems) -> tuple[Case, ...]:
    """Parses the cases for a pipeline."""
    node = root.get("cases")
    if not isinstance(node, MappingNode) or not node.entries:
        place, found = (root.place, "there are none") if node is None else (node.place, f"not {describe(node)}")
        problems.error(
            place, f"cases must be a mapping of names, {found}", "write cases: {name: {given: …, expect: …}}"
        )
        return ()
    parser = CaseParser(pipeline, problems)
    return tuple(parser.case(key, value) for key, value in node.entries)


class CaseParser:
    """Parses the cases of one pipeline, and checks names against it."""

    def __init__(self, pipeline: Pipeline, problems: Problems) -> None:
        self._pipeline = pipeline
        self._problems = problems
        steps = [each.name for each in pipeline.steps]
        self._givable = [*(each.name for each in pipeline.sources), *steps]
        self._names = {
            Outlet.SINK: [each.name for each in pipeline.sinks],
            Outlet.VIEW: [each.name for each in pipeline.views],
            Outlet.STEP: steps,
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
        error = expect.text("error")
        return Case(
            key.text,
            key.place,
            (*turns, self._check(expect)),
            items is None,
            None if error is None else PlacedValue(error, expect.place_of("error")),
        )

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
        return GivenBatch(
            {
                name.text: self._list(value, f"rows given to '{name.text}'")
                for name, value in self._entries(node, "given")
                if self._is_known(name, self._givable, "source or step")
            }
        )

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
            self._problems.error(
                expect.key_place("dead_letters"),
                "the pipeline has no dead-letter topic",
                "add `dead_letters: topic` to it",
            )
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
        rows = fields.node(key)
        count = fields.node("count")
        return ExpectedRows(
            outlet,
            name,
            node.place,
            None if rows is None else self._list(rows, f"{key} of {what}"),
            None if count is None else self._number(count, f"count of {what}"),
            may_have_more=key == "contains",
            in_order=fields.flag("in_order", False),
            all_columns=fields.flag("all_columns", False),
        )

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
