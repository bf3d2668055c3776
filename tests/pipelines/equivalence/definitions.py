"""The YAML definition of a case."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml

from tests.pipelines.equivalence.cases import (
    LABELS,
    ROW,
    STREAM_COLUMNS,
    TYPES,
    Aggregate,
    Case,
    Deduplicate,
    Explode,
    Number,
    Operation,
    Select,
    Sink,
    Source,
    StaticJoin,
    Step,
    StreamJoin,
    View,
)

if TYPE_CHECKING:
    from pathlib import Path

AGGREGATES = {"events": "count(*)", "total": "sum(n)", "top": "max(n)"}
PROCESSORS = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Numbers(StatefulProcessor):
    def init(self, handle):
        self.last = handle.getValueState("last", "i BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        i = self.last.get()[0] if self.last.exists() else 0
        for _ in rows:
            i += 1
            yield Row(k=key[0], i=i)
        self.last.update((i,))
"""


def write_definition(case: Case, folder: Path, engine: str = "standard") -> Path:
    """Writes the definition, its processors and its static table."""
    (folder / "processors.py").write_text(PROCESSORS)
    (folder / "labels.json").write_text("".join(json.dumps({"k": k, "label": label}) + "\n" for k, label in LABELS))
    file = folder / "pipeline.yml"
    file.write_text(definition_of(case, engine))
    return file


def definition_of(case: Case, engine: str = "standard") -> str:
    made: dict[str, Any] = {
        "pipeline": "case",
        "engine": engine,
        "dead_letters": "dead",
        "sources": {each.name: source_of(each) for each in case.sources},
        "steps": {each.name: step_of(each) for each in case.steps},
        "sinks": {each.name: sink_of(each) for each in case.sinks},
        "views": {each.name: view_of(each) for each in case.views},
    }
    if any(isinstance(each.operation, StaticJoin) for each in case.steps):
        files = {"path": "labels.json", "format": "json"}
        made["sources"]["labels"] = {"files": files, "schema": "k STRING, label STRING"}
    return yaml.safe_dump({key: value for key, value in made.items() if value}, sort_keys=False, width=110)


def source_of(source: Source) -> dict[str, Any]:
    types = {**{name: TYPES[name] for name in STREAM_COLUMNS}, "id": "BIGINT NOT NULL", "at": "TIMESTAMP NOT NULL"}
    if source.is_time_computed:
        types["ts"] = "STRING NOT NULL"
        del types["at"]
    made: dict[str, Any] = {
        "topic": source.name,
        "schema": ", ".join(f"{name} {kind}" for name, kind in types.items()),
        "tombstones": "dead_letters",
    }
    if source.delay_minutes is not None:
        made["watermark"] = watermark_of(source.delay_minutes)
    if source.is_time_computed:
        made["columns"] = {"at": "to_timestamp(ts)"}
    return made


def watermark_of(minutes: int) -> dict[str, Any]:
    return {"column": "at", "delay": f"{minutes} minutes"}


def step_of(step: Step) -> dict[str, Any]:
    made = operation_of(step.operation)
    if step.delay_minutes is not None:
        made["watermark"] = watermark_of(step.delay_minutes)
    if step.expectations:
        made["expect"] = {each.name: {"check": each.check, "otherwise": each.otherwise} for each in step.expectations}
    return made


def operation_of(operation: Operation) -> dict[str, Any]:
    if isinstance(operation, Select):
        return {"sql": select_of(operation)}
    if isinstance(operation, Explode):
        return {"sql": explode_of(operation)}
    if isinstance(operation, StaticJoin):
        return {"from": operation.input, "join": {"table": "labels", "on": ["k"], "how": operation.how}}
    if isinstance(operation, Aggregate):
        return aggregate_of(operation)
    if isinstance(operation, Deduplicate):
        within = {} if operation.within_minutes is None else {"within": f"{operation.within_minutes} minutes"}
        return {"from": operation.input, "deduplicate": {"key": ["id"], **within}}
    if isinstance(operation, Number):
        state = {"key": ["k"], "processor": "processors:Numbers"}
        return {"from": operation.input, "state": state, "schema": "k STRING, i BIGINT"}
    if isinstance(operation, StreamJoin):
        return {"sql": join_of(operation)}
    rows = ", ".join(ROW)
    return {"sql": f"select {rows} from {operation.left} union all select {rows} from {operation.right}"}


def select_of(select: Select) -> str:
    columns = "*" if select.columns is None else ", ".join(select.columns)
    computed = "".join(f", {expression} as {name}" for name, expression in select.computed)
    where = f" where {select.where}" if select.where else ""
    return f"select {columns}{computed} from {select.input}{where}"


def explode_of(explode: Explode) -> str:
    columns = ", ".join(ROW)
    if explode.style == "lateral":
        return f"select {columns}, tag from {explode.input} lateral view explode(tags) as tag"
    function = "explode_outer" if explode.style == "outer" else "explode"
    return f"select {columns}, {function}(tags) as tag from {explode.input}"


def aggregate_of(operation: Aggregate) -> dict[str, Any]:
    if operation.is_sql:
        return {"sql": aggregate_query(operation)}
    made: dict[str, Any] = {"from": operation.input, "by": list(operation.by), "aggregate": AGGREGATES}
    if operation.size is not None:
        slide = {} if operation.slide is None else {"slide": f"{operation.slide} minutes"}
        made["window"] = {"column": "at", "size": f"{operation.size} minutes", **slide}
    return made


def aggregate_query(operation: Aggregate) -> str:
    """With a window, `window_start` and `window_end` are selected from it."""
    selected = [*operation.by, *(f"{expression} as {name}" for name, expression in AGGREGATES.items())]
    groups = list(operation.by)
    if operation.size is not None:
        slide = "" if operation.slide is None else f", '{operation.slide} minutes'"
        window = f"window(at, '{operation.size} minutes'{slide})"
        selected = [f"{window}.start as window_start", f"{window}.end as window_end", *selected]
        groups = [window, *groups]
    grouping = f" group by {', '.join(groups)}" if groups else ""
    return f"select {', '.join(selected)} from {operation.input}{grouping}"


def join_of(join: StreamJoin) -> str:
    how = "left join" if join.how == "left" else "join"
    bound = f"interval {join.minutes} minutes"
    return (
        f"select a.id, a.k, a.n, a.at, b.id as other, b.n as other_n from {join.left} a {how} {join.right} b "
        f"on a.k = b.k and b.at >= a.at - {bound} and b.at <= a.at + {bound}"
    )


def sink_of(sink: Sink) -> dict[str, Any]:
    made: dict[str, Any] = {"from": sink.input, "mode": sink.mode}
    if sink.kind == "topic":
        made["topic"] = sink.name
    elif sink.kind == "table":
        made |= {"table": sink.name} if sink.mode == "append" else {"table": sink.name, "key": list(sink.key)}
    else:
        made["files"] = {"path": sink.name, "format": "json"}
    return made


def view_of(view: View) -> dict[str, Any]:
    if view.is_latest:
        return {"from": view.input, "key": ["k"], "order_by": "at"}
    return {"from": view.input, "by": ["k"], "aggregate": AGGREGATES}
