"""Pages of docs/rules, and docs/sql-you-know.md: prose, definitions in blocks of YAML, and the exact verdict of each.

The first block of a page declares its sources. A definition without sinks and views writes its last step to a topic.
`python -m tests.pipelines.rules.pages` writes the verdicts into the pages: read them as a user would.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.definition.parsing import parse_pipeline
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.definition.yaml_nodes import read_raw_yaml
from odradek.pipelines.planning.rules import checked_plan
from tests.pipelines.generated.constructs import constructs_of

if TYPE_CHECKING:
    from tests.pipelines.generated.constructs import Construct

DOCS = Path(__file__).resolve().parents[3] / "docs"
BLOCK = re.compile(r"```yaml\n(?P<yaml>.*?)```\n(?:```text\n(?P<verdict>.*?)```\n)?", re.DOTALL)
ACCEPTED = "accepted\n"


@dataclass(frozen=True, slots=True)
class Judged:
    """What the rules say of a definition, and the constructs that they accept."""

    verdict: str
    constructs: Counter[Construct]


@dataclass(frozen=True, slots=True)
class Example:
    """A definition of a page, and the verdict that the page gives it."""

    page: str
    line: int
    sources: str
    definition: str
    verdict: str

    def judged(self) -> Judged:
        """The verdict, with lines and columns as they are in the block."""
        problems = Problems()
        root = read_raw_yaml(self.sources + with_end(self.definition), "", problems)
        parsed = None if root is None else parse_pipeline(root, problems)
        if parsed is None:
            return Judged("".join(f"{each}\n" for each in problems), Counter())
        plan = checked_plan(parsed.pipeline, problems, parsed.broken)
        above = self.sources.count("\n")
        found = [f"{each.place.line - above}:{each.place.column}: {str(each).split(': ', 1)[1]}\n" for each in problems]
        constructs: Counter[Construct] = constructs_of(plan) if not problems.errors else Counter()
        return Judged("".join(found) if problems.errors else f"{ACCEPTED}{''.join(found)}", constructs)


def with_end(definition: str) -> str:
    if re.search(r"^(sinks|views):", definition, re.MULTILINE):
        return definition
    steps = re.findall(r"^  (\w+):", definition.rsplit("steps:", maxsplit=1)[-1], re.MULTILINE)
    return f"{definition}sinks: {{out: {{from: {steps[-1]}, topic: out}}}}\n"


def pages() -> list[Path]:
    return [*sorted(DOCS.glob("rules/*.md")), DOCS / "sql-you-know.md"]


def examples(page: Path) -> list[Example]:
    text = page.read_text(encoding="utf-8")
    first, *others = BLOCK.finditer(text)
    sources = f"pipeline: page\n{first['yaml']}"
    return [
        Example(page.name, text[: each.start()].count("\n") + 1, sources, each["yaml"], each["verdict"] or "")
        for each in others
    ]


def record(page: Path) -> None:
    """Writes the verdicts into a page."""
    verdicts = iter([each.judged().verdict for each in examples(page)])
    text = page.read_text(encoding="utf-8")
    start = next(BLOCK.finditer(text)).end()
    recorded = BLOCK.sub(lambda each: f"```yaml\n{each['yaml']}```\n```text\n{next(verdicts)}```\n", text[start:])
    page.write_text(text[:start] + recorded, encoding="utf-8")


if __name__ == "__main__":
    for each in pages():
        record(each)
