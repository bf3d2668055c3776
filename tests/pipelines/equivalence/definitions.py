"""The YAML definition of a case."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml

from tests.pipelines.equivalence.cases import (
    KNOWN,
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
    Python,
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

PROCESSORS = """
from pyspark.sql import Row
from pyspark.sql import functions as F
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


def positive(rows):
    return rows.where("n > 0").withColumn("x", F.col("n") * 10)


def tallied(rows):
    return rows.groupBy("k").agg(F.count("*").alias("events"))


def shout(text):
    return None if text is None else text.upper() + "!"
"""
FUNCTIONS = {"shout": {"python": "processors:shout", "returns": "STRING"}}
CHANGES = {"key": ["k"], "sequence": "at", "deletes": "n < 0"}


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
    if case.checks_labels:
        expected = {name: {"check": check, "otherwise": otherwise} for name, (check, otherwise) in KNOWN.items()}
        made["steps"]["known"] = {"sql": "select * from labels", "expect": expected}
    if any(calls_function(each) for each in case.steps):
        made["functions"] = FUNCTIONS
    return yaml.safe_dump({key: value for key, value in made.items() if value}, sort_keys=False, width=110)


def calls_function(step: Step) -> bool:
    operation = step.operation
    return isinstance(operation, Select) and any("shout(" in expression for _, expression in operation.computed)


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
        return {"from": operation.input, "join": {"table": operation.table, "on": ["k"], "how": operation.how}}
    if isinstance(operation, Aggregate):
        return aggregate_of(operation)
    if isinstance(operation, Deduplicate):
        within = {} if operation.within_minutes is None else {"within": f"{operation.within_minutes} minutes"}
        return {"from": operation.input, "deduplicate": {"key": ["id"], **within}}
    if isinstance(operation, Number):
        state = {"key": ["k"], "processor": "processors:Numbers"}
        return {"from": operation.input, "state": state, "schema": "k STRING, i BIGINT"}
    if isinstance(operation, StreamJoin):
        return join_of(operation)
    if isinstance(operation, Python):
        return {"from": operation.input, "python": f"processors:{operation.function}"}
    rows = f"* except ({ROW[-1]}), {ROW[-1]}" if operation.has_star else ", ".join(ROW)
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


def aggregates_of(value: str) -> dict[str, str]:
    return {"events": "count(*)", "total": f"sum({value})", "top": f"max({value})"}


def aggregate_of(operation: Aggregate) -> dict[str, Any]:
    if operation.is_sql:
        return {"sql": aggregate_query(operation)}
    made: dict[str, Any] = {"from": operation.input, "aggregate": aggregates_of(operation.value)}
    if operation.by:
        made["by"] = list(operation.by)
    if operation.is_windowed:
        lengths = {"size": operation.size, "slide": operation.slide, "gap": operation.gap}
        spans = {name: f"{minutes} minutes" for name, minutes in lengths.items() if minutes is not None}
        made["window"] = {"column": operation.time, **spans}
    return made


def aggregate_query(operation: Aggregate) -> str:
    """With a window, `window_start` and `window_end` are selected from it."""
    aggregates = aggregates_of(operation.value).items()
    selected = [*operation.by, *(f"{expression} as {name}" for name, expression in aggregates)]
    groups = list(operation.by)
    if operation.is_windowed:
        name, length = ("session_window", operation.gap) if operation.gap else ("window", operation.size)
        slide = "" if operation.slide is None else f", '{operation.slide} minutes'"
        selected = [f"{name}.start as window_start", f"{name}.end as window_end", *selected]
        groups = [f"{name}({operation.time}, '{length} minutes'{slide})", *groups]
    grouping = f" group by {', '.join(groups)}" if groups else ""
    return f"select {', '.join(selected)} from {operation.input}{grouping}"


def join_of(join: StreamJoin) -> dict[str, Any]:
    if join.is_declared:
        bound = {"on": ["k"], "within": f"{join.minutes} minutes", "how": join.how}
        return {"from": join.left, "join": {"stream": join.right, **bound}}
    how = "left join" if join.how == "left" else "join"
    bound_text = f"interval {join.minutes} minutes"
    return {
        "sql": f"select a.id, a.k, a.n, a.at, b.id as other, b.n as other_n from {join.left} a {how} {join.right} b "
        f"on a.k = b.k and b.at >= a.at - {bound_text} and b.at <= a.at + {bound_text}"
    }


def changes_of(form: str) -> dict[str, Any]:
    return {**CHANGES, "history": True} if form == "history" else dict(CHANGES)


def sink_of(sink: Sink) -> dict[str, Any]:
    made: dict[str, Any] = {"from": sink.input, "mode": sink.mode}
    if sink.kind == "topic":
        made["topic"] = sink.name
        if sink.form == "deletes":
            made |= {"key": "id", "deletes": "n < 0"}
    elif sink.kind == "files":
        made["files"] = {"path": sink.name, "format": "json"}
    elif sink.form in {"changes", "history"}:
        made = {"from": sink.input, "table": sink.name, "changes": changes_of(sink.form)}
    else:
        made |= {"table": sink.name} if sink.mode == "append" else {"table": sink.name, "key": list(sink.key)}
        order = "at" if sink.form == "latest" else sink.form.removeprefix("by ")
        made |= {"order_by": order} if sink.form == "latest" or sink.form.startswith("by ") else {}
    return made


def view_of(view: View) -> dict[str, Any]:
    if view.form == "latest":
        return {"from": view.input, "key": ["k"], "order_by": "at"}
    if view.form == "groups":
        return {"from": view.input, "by": ["k"], "aggregate": aggregates_of("n")}
    if view.form == "whole":
        return {"from": view.input, "aggregate": aggregates_of("n")}
    if view.form == "arrived":
        return {"from": view.input, "key": ["k"]}
    return {"from": view.input, "changes": changes_of(view.form)}
