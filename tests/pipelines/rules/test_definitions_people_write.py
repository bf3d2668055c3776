"""Definitions in the shapes that other tools teach get the verdicts that a user would agree with.

`python -m tests.pipelines.rules.test_definitions_people_write` prints those whose verdict is another.
"""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from odradek.pipelines.definition.parsing import parse_pipeline
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.definition.yaml_nodes import read_raw_yaml
from odradek.pipelines.planning.rules import checked_plan

FILE = Path(__file__).with_name("definitions_people_write.yml")
ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True)
class Written:
    """A definition, and the verdict that it should get."""

    shape: str
    text: str
    verdict: str

    def judged(self) -> tuple[str, list[str]]:
        """The codes of what is refused, and all problems."""
        problems = Problems()
        root = read_raw_yaml(self.text, "", problems)
        parsed = None if root is None else parse_pipeline(root, problems)
        if parsed is not None:
            checked_plan(parsed.pipeline, problems, parsed.broken)
        codes = dict.fromkeys(each.code or "OD01" for each in problems.errors)
        return ", ".join(sorted(codes)) or ACCEPTED, [str(each) for each in problems]


def definitions() -> list[Written]:
    listed = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    sources = f"sources:\n{textwrap.indent(listed['sources'], '  ')}"
    return [Written(each["shape"], text_of(each, sources), each["verdict"]) for each in listed["definitions"]]


def text_of(written: dict[str, object], sources: str) -> str:
    """The whole definition: over the sources of the file, unless it has its own. Without ends, its step `s` goes to a
    topic."""
    text = str(written.get("definition", f"steps: {{s: {{sql: {json.dumps(written.get('sql'))}}}}}"))
    head = "pipeline: p\ndead_letters: refused\n" + ("" if "sources:" in text else sources)
    if "sinks:" in text or "views:" in text:
        return head + text
    end = {"topic": "out", "mode": written.get("mode", "append")}
    if "key" in written:
        end = {"table": "out", "key": written["key"]}
    return f"{head}{text}\nsinks: {{out: {json.dumps({'from': 's', **end})}}}\n"


DEFINITIONS = definitions()


@pytest.mark.parametrize("written", DEFINITIONS, ids=lambda each: each.shape)
def test_verdicts_are_those_that_the_file_gives(written: Written) -> None:
    verdict, problems = written.judged()
    assert verdict == written.verdict, "\n".join(problems)


def test_there_are_many_of_both_verdicts() -> None:
    accepted = sum(each.verdict == ACCEPTED for each in DEFINITIONS)
    assert len(DEFINITIONS) >= 200
    assert min(accepted, len(DEFINITIONS) - accepted) >= 60


def print_differences() -> None:
    for each in DEFINITIONS:
        verdict, problems = each.judged()
        if verdict != each.verdict:
            print(f"{each.shape}: {each.verdict} expected, {verdict}", *problems, sep="\n    ")


if __name__ == "__main__":
    print_differences()
