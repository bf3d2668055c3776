"""Spark accepts the definitions that the pages accept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.parsing import parse_pipeline
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.definition.yaml_nodes import read_raw_yaml
from odradek.pipelines.planning.rules import checked_plan
from odradek.pipelines.spark.analysing.analysis import analysed
from tests.pipelines.rules.pages import ACCEPTED, examples, pages, with_end

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import Source
    from tests.pipelines.rules.pages import Example

pytestmark = pytest.mark.spark

CODE = {
    "rows": """
def plain(orders):
    return orders.select("id", "at")

made = plain
""",
    "counter": """
from pyspark.sql.streaming import StatefulProcessor

class Numbers(StatefulProcessor):
    output_schema = "customer STRING, i BIGINT"

    def init(self, handle):
        pass

    def handleInputRows(self, key, rows, timerValues):
        return iter(())
""",
}
CODE["rows"] += CODE["counter"].replace("Numbers", "Before")
CODE["timers"] = CODE["counter"].replace("Numbers", "Timers")


@pytest.mark.more(but="01-row-by-row")
@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_spark_accepts_what_a_page_accepts(
    spark: SparkSession, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, code in CODE.items():
        (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    accepted = [each for each in examples(page) if each.verdict.startswith(ACCEPTED)]
    assert {each.line: found for each in accepted if (found := refusals(spark, each))} == {}


def refusals(spark: SparkSession, example: Example) -> list[str]:
    problems = Problems()
    root = read_raw_yaml(example.sources + with_end(example.definition), "", problems)
    parsed = None if root is None else parse_pipeline(root, problems)
    assert parsed is not None
    found = Problems()
    plan = checked_plan(parsed.pipeline, problems, parsed.broken)
    read = {name for end in plan.ends for name in plan.upstream(end.input)}
    sources = tuple(each for each in parsed.pipeline.sources if each.name in read)  # of all that the page has
    analysed(spark, checked_plan(replace(parsed.pipeline, sources=sources), problems), found, not_read)
    return [str(each) for each in found.errors]


def not_read(source: Source) -> DataFrame:
    raise AssertionError(f"{source.name} declares its columns")
