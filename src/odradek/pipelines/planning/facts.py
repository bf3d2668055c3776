"""Checks a whole definition by its plan: the rules of streams, and what `definition.checks` asks the plan for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.checks import Facts, check_definition
from odradek.pipelines.planning.rules import checked_plan
from odradek.pipelines.planning.written import named_in_sql
from odradek.pipelines.sql.functions import kinds

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Parsed
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.planning.plan import Plan


def checked_definition(parsed: Parsed, problems: Problems) -> Plan:
    """The plan of a definition, with its flows if nothing is wrong. Reports every problem."""
    plan = checked_plan(parsed.pipeline, problems, parsed.broken)
    check_definition(parsed.pipeline, facts_of(plan), problems, parsed.broken)
    return plan


def facts_of(plan: Plan) -> Facts:
    upstream = {name for end in plan.ends for name in plan.upstream(end.input)}
    declared = [each for each in plan.tables.values() if not each.is_hidden]
    return Facts(
        used=frozenset(plan.table(name).owner.name.lower() for name in upstream),
        called=named_in_sql(plan),
        built_in=frozenset(kinds()),
        streams=frozenset(each.name.lower() for each in declared if each.path.is_stream),
        columns={each.name.lower(): each.columns.types for each in declared if each.columns is not None},
    )
