"""The oracle: what a case must give, computed as a batch on plain DataFrames from the description alone.

It uses nothing of the pipelines: neither their model nor their compiler. The rows of every step are collected, so that
each step is a plan of its own. Rows carry the batch, the arrival and the place of the record that they derive from, and
the watermark by which they are late.
"""

from __future__ import annotations

import datetime
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.pipelines.equivalence.cases import (
    LABELS,
    RECORD_COLUMNS,
    ROW,
    STREAM_COLUMNS,
    TYPES,
    Aggregate,
    Case,
    Deduplicate,
    Expectation,
    Explode,
    Number,
    Python,
    Select,
    StaticJoin,
    Step,
    StreamJoin,
    Union,
    View,
)
from tests.pipelines.equivalence.expected_ends import changed, greatest, last_arrived, latest, with_tombstones
from tests.pipelines.equivalence.lateness import MINUTE_MS, late_marks, period_end_ms
from tests.pipelines.equivalence.outcomes import Outcome, last_of_each, milliseconds, plain_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from tests.pipelines.equivalence.cases import Sink
    from tests.pipelines.equivalence.outcomes import Row

PROVENANCE = {"_arrival": "BIGINT", "_place": "STRING", "_batch": "BIGINT", "_mark": "BIGINT"}
REMOVING = ("drop", "quarantine", "fail")
ARROW = {
    "BIGINT": pa.int64(),
    "STRING": pa.string(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "ARRAY<STRING>": pa.list_(pa.string()),
    "BINARY": pa.binary(),
    "INT": pa.int32(),
    "HEADERS": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}
FUNCTIONS = {"shout(k)": "concat(upper(k), '!')"}  # the Python functions of SQL, as expressions


class Oracle:
    """Computes the outcome of one case: without `is_stream` no row is late."""

    def __init__(self, spark: SparkSession, case: Case, *, is_stream: bool = True) -> None:
        self._spark = spark
        self._case = case
        self._marks = late_marks(case) if is_stream else [None] * len(case.batches)
        self._columns: dict[str, list[str]] = {}
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self.outcome = Outcome()
        self.failed: list[tuple[int, str]] = []  # batch and name of expectations that stop the pipeline

    def compute(self) -> None:
        self._parse()
        read = [each.input for each in self._case.sinks] + [each.input for each in self._case.views]
        read += [each.name for each in self._case.steps if each.expectations]
        used = {step for name in read for step in self._case.upstream(name)}
        for step in self._case.steps:
            if step in used:  # a step that nothing reads and that expects nothing is not computed
                self._compute(step)
        if self._case.checks_labels:
            self.outcome.violations.update({("known", "is not Bob"): 1, ("known", "is Ada"): 2})
        for sink in self._case.sinks:
            self.outcome.rows[sink.name] = counted(self._written(sink))
        for view in self._case.views:
            self.outcome.rows[view.name] = counted(self._view(view))

    def final_rows(self, sink: Sink) -> Counter[Row]:
        """The rows of windows that the watermark has certainly passed: they must be written before the stream ends."""
        steps = self._case.upstream(sink.input)
        windowed = [each.operation for each in steps if isinstance(each.operation, Aggregate)]
        delays = [each.delay_minutes or 0 for each in self._case.sources] + [each.delay_minutes or 0 for each in steps]
        is_known = len(windowed) == len(self._case.sources) == 1 and windowed[0].is_windowed
        if not is_known or sink.mode != "append":
            return Counter()
        last = max((row["at"] for row in self._rows[self._case.sources[0].name]), default=None)
        if last is None:
            return Counter()
        passed = last - datetime.timedelta(minutes=max(delays))
        return counted([row for row in self._shown(sink.input) if row["window_end"] <= passed])

    def _parse(self) -> None:
        for source in self._case.sources:
            self._rows[source.name] = []
            self._columns[source.name] = [*STREAM_COLUMNS, *(["ts"] if source.is_time_computed else [])]
        arrival = 0
        for number, batch in enumerate(self._case.batches):
            for name, records in batch.items():
                for each in records:
                    arrival += 1
                    place = f"{each.partition}:{each.offset}"
                    if each.rejected is not None:
                        self.outcome.letters[each.rejected, name, place] += 1
                        continue
                    origin = {"_arrival": arrival, "_place": place, "_batch": number, "_mark": self._marks[number]}
                    record = each.columns(name)  # that a step may select
                    self._rows[name].append({**dict(each.values), **record, **origin})

    def _compute(self, step: Step) -> None:
        if isinstance(step.operation, Deduplicate):
            self._columns[step.name] = self._columns[step.operation.input]
            self._rows[step.name] = self._deduplicated(step, step.operation)
            if not step.expectations:
                return
            frame = self._frame(step.name)
        else:
            frame = self._operation(step)
        checks = [
            F.coalesce(F.expr(each.check), F.lit(False)).alias(f"_met_{i}") for i, each in enumerate(step.expectations)
        ]
        rows = collected(frame.select("*", *checks) if checks else frame)
        self._columns[step.name] = [name for name in frame.columns if name not in PROVENANCE]
        self._rows[step.name] = [row for row in rows if self._is_kept(step, row)]

    def _is_kept(self, step: Step, row: dict[str, Any]) -> bool:
        unmet: list[Expectation] = [each for i, each in enumerate(step.expectations) if not row.pop(f"_met_{i}")]
        for each in unmet:
            self.outcome.violations[step.name, each.name] += 1
            if each.otherwise == "fail":
                self.failed.append((row["_batch"], each.name))
        quarantined = next((each for each in unmet if each.otherwise == "quarantine"), None)
        if quarantined is not None:
            kind = f"expectation '{quarantined.name}' not met"
            self.outcome.letters[kind, step.name, row.get("_place")] += 1
        return not any(each.otherwise in REMOVING for each in unmet)

    def _operation(self, step: Step) -> DataFrame:
        operation = step.operation
        if isinstance(operation, StreamJoin):
            return self._joined(step, operation)
        if isinstance(operation, Aggregate):
            return self._aggregated(step, operation)
        if isinstance(operation, Select):
            columns = self._columns[operation.input] if operation.columns is None else operation.columns
            frame = self._frame(operation.input, records=[each for each in RECORD_COLUMNS if each in columns])
            if operation.where is not None:
                frame = frame.where(operation.where)
            computed = [F.expr(FUNCTIONS.get(text, text)).alias(name) for name, text in operation.computed]
            return frame.select(*columns, *computed, *kept_provenance(frame))
        if isinstance(operation, Explode):
            frame = self._frame(operation.input)
            function = F.explode_outer if operation.style == "outer" else F.explode
            return frame.select(*ROW, function("tags").alias("tag"), *kept_provenance(frame))
        if isinstance(operation, StaticJoin):
            rows = [row for row in LABELS if row[1] != "Bob"] if operation.is_checked else LABELS
            columns = pa.table({name: [row[i] for row in rows] for i, name in enumerate(("k", "label"))})
            how = {"semi": "left_semi", "anti": "left_anti"}.get(operation.how, operation.how)
            return self._frame(operation.input).join(self._spark.createDataFrame(columns), "k", how)
        if isinstance(operation, Python):
            frame = self._frame(operation.input)
            if operation.function == "tallied":
                return frame.groupBy("k").agg(F.count("*").alias("events"))
            return frame.where("n > 0").withColumn("x", F.expr("n * 10"))
        if isinstance(operation, Number):
            numbers = F.row_number().over(Window.partitionBy("k").orderBy(F.lit(1))).cast("bigint")
            return self._frame(operation.input).select("k", numbers.alias("i"))
        assert isinstance(operation, Union)
        filled = [name for name in (operation.left, operation.right) if self._rows[name]]
        if len(filled) == 1:  # without rows there is no provenance
            frame = self._frame(filled[0])
            return frame.select(*ROW, *kept_provenance(frame))
        left, right = self._frame(operation.left), self._frame(operation.right)
        both = [each for each in kept_provenance(left) if each in right.columns]
        return left.select(*ROW, *both).unionByName(right.select(*ROW, *both))

    def _deduplicated(self, step: Step, operation: Deduplicate) -> list[dict[str, Any]]:
        """The first row of each id, or of each id in each period and then in each shifted period."""
        rows = sorted(self._rows[operation.input], key=lambda row: row["_arrival"])
        for is_shifted in (False,) if operation.within_minutes is None else (False, True):
            first: dict[Any, dict[str, Any]] = {}
            for row in rows:
                at_ms = milliseconds(row["at"])
                end_ms, key = at_ms, row["id"]
                if operation.within_minutes is not None:
                    end_ms = period_end_ms(at_ms, operation.within_minutes, is_shifted=is_shifted)
                    key = row["id"], end_ms
                if row["_mark"] is not None and end_ms <= row["_mark"]:
                    self.outcome.late[step.name] += 1
                else:
                    first.setdefault(key, row)
            rows = list(first.values())
        return rows

    def _joined(self, step: Step, join: StreamJoin) -> DataFrame:
        right_time = "other_at" if join.is_declared else "at"
        left = self._timely(step, self._rows_by_time(join.left, "at"))
        right = self._timely(step, self._rows_by_time(join.right, right_time))
        made = self._frame(join.left, left).drop(*PROVENANCE)
        other = self._frame(join.right, right).drop(*PROVENANCE)
        if join.is_declared:
            other = other.withColumnsRenamed({"k": "_k"}).withColumn("_at", F.col("other_at"))
        else:
            made = made.select(*ROW)
            names = {"k": "_k", "at": "_at", "id": "other", "n": "other_n"}
            other = other.select(*(F.col(name).alias(new) for name, new in names.items()))
        apart = F.abs(F.unix_micros("at") - F.unix_micros("_at"))
        condition = (F.col("k") == F.col("_k")) & (apart <= join.minutes * 60_000_000)
        joined = made.join(other, condition, join.how)
        return joined.withColumn("k", F.coalesce("k", "_k")).drop("_k", "_at")

    def _rows_by_time(self, name: str, time: str) -> list[tuple[dict[str, Any], int]]:
        return [(row, milliseconds(row[time])) for row in self._rows[name]]

    def _timely(self, step: Step, rows: list[tuple[dict[str, Any], int]]) -> list[dict[str, Any]]:
        """The rows that are not late for an operator: those whose time, or end of their session, is not passed."""
        late = [row for row, end_ms in rows if row.get("_mark") is not None and end_ms <= row["_mark"]]
        self.outcome.late[step.name] += len(late)
        return [row for row, end_ms in rows if row.get("_mark") is None or end_ms > row["_mark"]]

    def _aggregated(self, step: Step, operation: Aggregate) -> DataFrame:
        if not operation.is_windowed or "_mark" not in (self._rows[operation.input] or [{}])[0]:
            return aggregated(self._frame(operation.input), operation)
        gap_ms = (operation.gap or 0) * MINUTE_MS
        if gap_ms:
            ends = [(row, end_ms + gap_ms) for row, end_ms in self._rows_by_time(operation.input, operation.time)]
            timely = self._timely(step, ends)
            return aggregated(self._frame(operation.input, timely), operation)
        frame = self._frame(operation.input)
        spans = frame.withColumn("_window", window_of(operation))
        is_late = F.coalesce(F.unix_millis("_window.end") <= F.col("_mark"), F.lit(False))
        late = collected(spans.where(is_late))
        groups = {(row["_batch"], row["_window"]["end"], *(row[name] for name in operation.by)) for row in late}
        self.outcome.late[step.name] += len(groups)  # Spark counts them once per group and batch
        return aggregated(spans.where(~is_late), operation)

    def _written(self, sink: Sink) -> list[dict[str, Any]]:
        rows = self._shown(sink.input)
        if sink.form == "arrived":
            return self._last_arrived(sink.input, sink.key)
        if sink.form.startswith("by "):
            return greatest(rows, sink.key, sink.form.removeprefix("by "))
        if sink.form == "latest":
            return latest(rows)
        if sink.form == "deletes":
            return with_tombstones(rows)
        if sink.form:
            return changed(rows, has_history=sink.form == "history")
        return last_of_each(rows, sink)

    def _view(self, view: View) -> list[dict[str, Any]]:
        if view.form in {"groups", "whole"}:
            by = ("k",) if view.form == "groups" else ()
            return collected(aggregated(self._frame(view.input), Aggregate(view.input, by)))
        if view.form == "arrived":
            return self._last_arrived(view.input, ("k",))
        if view.form == "latest":
            return latest(self._shown(view.input))
        return changed(self._shown(view.input), has_history=view.form == "history")

    def _frame(self, name: str, rows: list[dict[str, Any]] | None = None, records: Sequence[str] = ()) -> DataFrame:
        """The rows of a source or step, of a source also with these columns of its records."""
        found = self._rows[name] if rows is None else rows
        kept = [each for each in PROVENANCE if self._rows[name] and each in self._rows[name][0]]
        kept += [each for each in records if each not in self._columns[name]]
        types = {
            each: ARROW[TYPES.get(each) or PROVENANCE.get(each, "STRING")] for each in [*self._columns[name], *kept]
        }
        plain = [{each: row[each] for each in types} for row in found]
        return self._spark.createDataFrame(pa.Table.from_pylist(plain, pa.schema(list(types.items()))))

    def _last_arrived(self, name: str, key: tuple[str, ...]) -> list[dict[str, Any]]:
        rows = last_arrived(self._rows[name], key)
        return [{each: row[each] for each in self._columns[name]} for row in rows]

    def _shown(self, name: str) -> list[dict[str, Any]]:
        return [{each: row[each] for each in self._columns[name]} for row in self._rows[name]]


def collected(frame: DataFrame) -> list[dict[str, Any]]:
    """Rows with timestamps in UTC; Spark returns them in the time zone of this process."""
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    return [{name: in_utc(value) for name, value in row.items()} for row in rows]


def in_utc(value: Any) -> Any:
    return value.astimezone(datetime.UTC) if isinstance(value, datetime.datetime) else value


def kept_provenance(frame: DataFrame) -> list[str]:
    return [name for name in PROVENANCE if name in frame.columns]


def window_of(operation: Aggregate) -> Any:
    if operation.gap is not None:
        return F.session_window(operation.time, f"{operation.gap} minutes")
    slide = None if operation.slide is None else f"{operation.slide} minutes"
    return F.window(operation.time, f"{operation.size} minutes", slide)


def aggregated(frame: DataFrame, operation: Aggregate) -> DataFrame:
    value = operation.value
    aggregates = [F.count("*").alias("events"), F.sum(value).alias("total"), F.max(value).alias("top")]
    if not operation.is_windowed:
        return frame.groupBy(*operation.by).agg(*aggregates)
    window = F.col("_window") if "_window" in frame.columns else window_of(operation).alias("_window")
    grouped = frame.groupBy(window, *operation.by).agg(*aggregates)
    edges = [F.col("_window.start").alias("window_start"), F.col("_window.end").alias("window_end")]
    return grouped.select(*edges, *operation.by, "events", "total", "top")


def counted(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter(plain_row(row) for row in rows)
