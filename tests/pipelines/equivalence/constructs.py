"""The constructs of a case by name, to report how many of the drawn cases have each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.pipelines.equivalence.cases import (
    Aggregate,
    Deduplicate,
    Explode,
    Number,
    Python,
    Select,
    StaticJoin,
    StreamJoin,
)

if TYPE_CHECKING:
    from tests.pipelines.equivalence.cases import Case, Operation, Step


def constructs_of(case: Case) -> set[str]:
    found = {f"batches: {len(case.batches)}", f"sources: {len(case.sources)}"}
    for source in case.sources:
        found |= {"watermark of a step"} if source.delay_minutes is None else set()
        found |= {"computed event time"} if source.is_time_computed else set()
    for step in case.steps:
        found |= {*of_operation(step.operation), *of_expectations(step)}
    for sink in case.sinks:
        found.add(f"sink: {sink.kind} {sink.form or sink.mode}")
    found |= {f"view: {each.form}" for each in case.views}
    kinds: dict[str, set[str]] = {}
    for sink in case.sinks:
        kinds.setdefault(sink.input, set()).add(sink.kind)
    found |= {"sinks of several kinds on one step"} if any(len(each) > 1 for each in kinds.values()) else set()
    records = [each for batch in case.batches for records in batch.values() for each in records]
    found |= {f"record: {each.rejected}" for each in records if each.rejected}
    ids = [dict(each.values).get("id") for each in records if not each.rejected]
    return found | ({"record: duplicate"} if len(set(ids)) < len(ids) else set())


def of_operation(operation: Operation) -> set[str]:
    if isinstance(operation, Aggregate):
        return {of_aggregate(operation), *(["aggregate in SQL"] if operation.is_sql else [])}
    if isinstance(operation, Explode):
        return {f"explode: {operation.style}"}
    if isinstance(operation, StaticJoin):
        checked = ["expectations of a static step"] if operation.is_checked else []
        return {f"join of a table: {operation.how}", *checked}
    if isinstance(operation, StreamJoin):
        return {f"join of streams{'' if operation.is_declared else ' in SQL'}: {operation.how}"}
    if isinstance(operation, Deduplicate):
        return {"deduplicate within" if operation.within_minutes else "deduplicate"}
    if isinstance(operation, Number):
        return {"keyed state"}
    if isinstance(operation, Python):
        return {f"Python step: {operation.function}"}
    if isinstance(operation, Select):
        if "_offset" in (operation.columns or ()):
            return {"record columns"}
        calls = any("shout" in text for _, text in operation.computed)
        return {"filter" if operation.where else "projection", *(["Python function in SQL"] if calls else [])}
    return {"union"}


def of_aggregate(operation: Aggregate) -> str:
    if operation.time != "at":
        return "window over windows"
    if operation.gap is not None:
        return "sessions"
    if operation.size is None:
        return "aggregate without window"
    return "window" if operation.slide is None else "sliding window"


def of_expectations(step: Step) -> set[str]:
    return {f"expect: {each.otherwise}" for each in step.expectations}
