"""Checks `functions:`: names that SQL does not have yet, and joins that can call them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from odradek.pipelines.definition.function_calls import called_functions
from odradek.pipelines.definition.operations import Sql
from odradek.pipelines.definition.sql_text import SqlError, parse_query
from odradek.pipelines.definition.vocabulary import Engine

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Place, Problems


def check_functions(pipeline: Pipeline, problems: Problems) -> None:
    if pipeline.functions:
        check_function_names(pipeline, problems)
        check_joins(pipeline, problems)
    called = called_functions(pipeline)
    for each in pipeline.functions:
        if not each.is_deterministic and each.name in called and pipeline.engine is not Engine.BATCH:
            problems.warning(
                each.place,
                f"the function '{each.name}' is not deterministic: its value may differ between sinks and after a "
                "replay",
                "compute the value from the row, or in the producer",
            )


def check_function_names(pipeline: Pipeline, problems: Problems) -> None:
    from sqlglot import exp  # noqa: PLC0415 - the import takes 0.2 s

    first: dict[str, Place] = {}
    for each in pipeline.functions:
        before = first.setdefault(each.name.lower(), each.place)
        if before is not each.place:
            where = f"line {before.line}" if before.file == each.place.file else str(before)
            problems.error(each.place, f"the function '{each.name}' is already declared in {where}", "rename one")
        if each.name.upper() in exp.FUNCTION_BY_NAME:
            problems.error(
                each.place, f"'{each.name}' is the name of a built-in function of SQL", "choose another name"
            )


def check_joins(pipeline: Pipeline, problems: Problems) -> None:
    """Refuses functions of both sides in the condition of a join that is not inner, which Spark does not support."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    names = {each.name.lower() for each in pipeline.functions}
    for step in pipeline.steps:
        if not isinstance(step.operation, Sql):
            continue
        with suppress(SqlError):
            joins = [each for each in parse_query(step.operation.text).find_all(exp.Join) if each.args.get("on")]
            outer = [each.args["on"] for each in joins if each.side or each.kind in {"SEMI", "ANTI"}]
            calls = [call for on in outer for call in on.find_all(exp.Anonymous) if call.name.lower() in names]
            for call in calls:
                if len({column.table.lower() for column in call.find_all(exp.Column)}) > 1:
                    problems.error(
                        step.operation.place,
                        f"step '{step.name}' calls {call.name} with columns of both sides in the condition of a join, "
                        "which Spark supports for inner joins only",
                        "call it in an inner join, or in a step behind the join",
                    )
