"""The oracle: what a case must give, computed as a batch on plain DataFrames from the description alone.

It uses nothing of the pipelines: neither their model nor their compiler. The rows of every step are collected, so that
each step is a plan of its own. Rows carry the arrival and the place of the record that they derive from.
"""

from __future__ import annotations

import datetime
from collections import Counter
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.pipelines.equivalence.cases import (
    LABELS,
    ROW,
    STREAM_COLUMNS,
    TYPES,
    Aggregate,
    Case,
    Deduplicate,
    Expectation,
    Explode,
    Number,
    Select,
    StaticJoin,
    Step,
    StreamJoin,
    Union,
    View,
)
from tests.pipelines.equivalence.outcomes import Outcome, last_of_each, plain_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.pipelines.equivalence.cases import Sink
    from tests.pipelines.equivalence.outcomes import Row

PROVENANCE = {"_arrival": "BIGINT", "_place": "STRING"}
REMOVING = ("drop", "quarantine", "fail")


class Oracle:
    """Computes the outcome of one case."""

    def __init__(self, spark: SparkSession, case: Case) -> None:
        self._spark = spark
        self._case = case
        self._columns: dict[str, list[str]] = {}
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._outcome = Outcome()

    def outcome(self) -> Outcome:
        self._parse()
        for step in self._case.steps:
            self._compute(step)
        for sink in self._case.sinks:
            self._outcome.rows[sink.name] = counted(last_of_each(self._shown(sink.input), sink))
        for view in self._case.views:
            self._outcome.rows[view.name] = counted(self._view(view))
        return self._outcome

    def final_rows(self, sink: Sink) -> Counter[Row]:
        """The rows of windows that the watermark has certainly passed: they must be written before the stream ends.

        Rows that a filter removes may not move the watermark, so that only rows of the aggregation's input count.
        """
        steps = self._upstream(sink.input)
        windowed = [each.operation for each in steps if isinstance(each.operation, Aggregate) and each.operation.size]
        delays = [each.delay_minutes or 0 for each in self._case.sources] + [each.delay_minutes or 0 for each in steps]
        if len(windowed) != 1 or len(self._case.sources) != 1 or sink.mode != "append":
            return Counter()
        latest = max((row["at"] for row in self._rows[windowed[0].input]), default=None)
        if latest is None:
            return Counter()
        passed = latest.replace(tzinfo=None) - datetime.timedelta(minutes=max(delays))
        closed = [row for row in self._shown(sink.input) if row["window_end"].replace(tzinfo=None) <= passed]
        return counted(closed)

    def _upstream(self, name: str) -> list[Step]:
        """The steps before a name and its own."""
        step = self._case.step(name)
        if step is None:
            return []
        operation = step.operation
        inputs = [operation.left, operation.right] if isinstance(operation, StreamJoin | Union) else [operation.input]
        return [each for read in inputs for each in self._upstream(read)] + [step]

    def _parse(self) -> None:
        for source in self._case.sources:
            self._rows[source.name] = []
            self._columns[source.name] = [*STREAM_COLUMNS, *(["ts"] if source.is_time_computed else [])]
        arrival = 0
        for batch in self._case.batches:
            for name, records in batch.items():
                for each in records:
                    arrival += 1
                    place = f"{each.partition}:{each.offset}"
                    if each.rejected is not None:
                        self._outcome.letters[each.rejected, name, place] += 1
                    elif (name, each.partition, each.offset) not in self._case.late:
                        self._rows[name].append({**dict(each.values), "_arrival": arrival, "_place": place})

    def _compute(self, step: Step) -> None:
        frame = self._operation(step)
        checks = [
            F.coalesce(F.expr(each.check), F.lit(False)).alias(f"_met_{i}") for i, each in enumerate(step.expectations)
        ]
        rows = [row.asDict() for row in frame.select("*", *checks).collect()]
        self._columns[step.name] = [name for name in frame.columns if name not in PROVENANCE]
        self._rows[step.name] = [row for row in rows if self._is_kept(step, row)]

    def _is_kept(self, step: Step, row: dict[str, Any]) -> bool:
        unmet: list[Expectation] = [each for i, each in enumerate(step.expectations) if not row.pop(f"_met_{i}")]
        for each in unmet:
            self._outcome.violations[step.name, each.name] += 1
        quarantined = next((each for each in unmet if each.otherwise == "quarantine"), None)
        if quarantined is not None:
            kind = f"expectation '{quarantined.name}' not met"
            self._outcome.letters[kind, step.name, row.get("_place")] += 1
        return not any(each.otherwise in REMOVING for each in unmet)

    def _operation(self, step: Step) -> DataFrame:
        operation = step.operation
        if isinstance(operation, Select):
            frame = self._frame(operation.input)
            columns = self._columns[operation.input] if operation.columns is None else operation.columns
            if operation.where is not None:
                frame = frame.where(operation.where)
            computed = [F.expr(expression).alias(name) for name, expression in operation.computed]
            return frame.select(*columns, *computed, *kept_provenance(frame))
        if isinstance(operation, Explode):
            frame = self._frame(operation.input)
            function = F.explode_outer if operation.style == "outer" else F.explode
            return frame.select(*ROW, function("tags").alias("tag"), *kept_provenance(frame))
        if isinstance(operation, StaticJoin):
            labels = self._spark.createDataFrame(list(LABELS), "k STRING, label STRING")
            how = {"semi": "left_semi", "anti": "left_anti"}.get(operation.how, operation.how)
            return self._frame(operation.input).join(labels, "k", how)
        if isinstance(operation, Aggregate):
            return aggregated(self._frame(operation.input), operation)
        if isinstance(operation, Deduplicate):
            frame = self._frame(operation.input)
            first = Window.partitionBy("id").orderBy(*(["_arrival"] if "_arrival" in frame.columns else ["at"]))
            return frame.withColumn("_first", F.row_number().over(first)).where("_first = 1").drop("_first")
        if isinstance(operation, Number):
            numbers = F.row_number().over(Window.partitionBy("k").orderBy(F.lit(1))).cast("bigint")
            return self._frame(operation.input).select("k", numbers.alias("i"))
        if isinstance(operation, StreamJoin):
            return self._joined(operation)
        left, right = self._frame(operation.left), self._frame(operation.right)
        both = [each for each in kept_provenance(left) if each in right.columns]
        return left.select(*ROW, *both).unionByName(right.select(*ROW, *both))

    def _joined(self, join: StreamJoin) -> DataFrame:
        left = self._frame(join.left).select(*ROW)
        right = self._frame(join.right).select(
            F.col("k").alias("_k"), F.col("at").alias("_at"), F.col("id").alias("other"), F.col("n").alias("other_n")
        )
        apart_s = F.abs(F.unix_micros("at") - F.unix_micros("_at"))
        condition = (F.col("k") == F.col("_k")) & (apart_s <= join.minutes * 60_000_000)
        return left.join(right, condition, join.how).drop("_k", "_at")

    def _view(self, view: View) -> list[dict[str, Any]]:
        if not view.is_latest:
            frame = aggregated(self._frame(view.input), Aggregate(view.input, ("k",)))
            return [row.asDict() for row in frame.collect()]
        latest: dict[Any, dict[str, Any]] = {}
        for row in self._shown(view.input):
            if row["k"] not in latest or latest[row["k"]]["at"] < row["at"]:
                latest[row["k"]] = row
        return list(latest.values())

    def _frame(self, name: str) -> DataFrame:
        columns = self._columns[name]
        kept = [each for each in PROVENANCE if self._rows[name] and each in self._rows[name][0]]
        ddl = ", ".join(f"{each} {TYPES.get(each) or PROVENANCE.get(each, 'STRING')}" for each in [*columns, *kept])
        rows = [tuple(row[each] for each in [*columns, *kept]) for row in self._rows[name]]
        return self._spark.createDataFrame(rows, ddl)

    def _shown(self, name: str) -> list[dict[str, Any]]:
        return [{each: row[each] for each in self._columns[name]} for row in self._rows[name]]


def kept_provenance(frame: DataFrame) -> list[str]:
    return [name for name in PROVENANCE if name in frame.columns]


def aggregated(frame: DataFrame, operation: Aggregate) -> DataFrame:
    aggregates = [F.count("*").alias("events"), F.sum("n").alias("total"), F.max("n").alias("top")]
    if operation.size is None:
        return frame.groupBy(*operation.by).agg(*aggregates)
    slide = None if operation.slide is None else f"{operation.slide} minutes"
    window = F.window("at", f"{operation.size} minutes", slide)
    grouped = frame.groupBy(window, *operation.by).agg(*aggregates)
    edges = [F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")]
    return grouped.select(*edges, *operation.by, "events", "total", "top")


def counted(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter(plain_row(row) for row in rows)
