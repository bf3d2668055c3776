"""Plans of small definitions, and the verdicts of the rules."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from odradek.pipelines.definition.parsing import parse_pipeline
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.definition.yaml_nodes import read_raw_yaml
from odradek.pipelines.planning.rules import checked_plan

if TYPE_CHECKING:
    from odradek.pipelines.planning.plan import Plan

SOURCES = """
pipeline: p
sources:
  orders:
    topic: orders
    schema: "id BIGINT, customer STRING, amount DOUBLE, at TIMESTAMP"
    watermark: {column: at, delay: 1 minute}
  payments:
    topic: payments
    schema: "id BIGINT, paid DOUBLE, paid_at TIMESTAMP"
    watermark: {column: paid_at, delay: 1 minute}
  clicks: {topics: [web, app], schema: "id BIGINT, url STRING, at TIMESTAMP"}
  customers: {files: {path: customers.csv, format: csv}, schema: "customer STRING, country STRING"}
"""


def planned(text: str, head: str = SOURCES) -> tuple[Plan, list[str]]:
    """The plan of a definition over these sources, and the verdict of each problem as `validate` prints it."""
    problems = Problems()
    root = read_raw_yaml(head + textwrap.dedent(text), "p.yml", problems)
    assert root is not None
    parsed = parse_pipeline(root, problems)
    assert parsed is not None
    assert not problems.errors, str(problems.errors[0])
    plan = checked_plan(parsed.pipeline, problems)
    return plan, [str(each).removeprefix("p.yml:") for each in problems]


def sound_plan(text: str) -> Plan:
    plan, verdicts = planned(text)
    assert not [each for each in verdicts if " error" in each]
    return plan
