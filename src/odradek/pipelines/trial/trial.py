"""The run of one case: the pipeline on the case's rows, and its results so far."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from odradek.pipelines.definition.model import FileOrigin, TopicOrigin, TopicTarget
from odradek.pipelines.definition.places import ProblemList, Problems
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.rehearsal.local_pipeline import (
    GIVEN,
    READ,
    appended_steps,
    with_given_steps,
    with_local_ends,
    with_read_steps,
    without_sources,
)
from odradek.pipelines.spark.rehearsal.rehearsal import Rehearsal
from odradek.pipelines.spark.rehearsal.results import Results
from odradek.pipelines.spark.rehearsal.whole import WholeInput, nothing_given
from odradek.pipelines.trial.given import WRITTEN_AT, GivenRecord, check_columns, records_of
from odradek.pipelines.trial.model import Outlet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Sink, Source
    from odradek.pipelines.planning.plan import Plan
    from odradek.pipelines.spark.computing.counts import Violations
    from odradek.pipelines.trial.model import Advance, Case, GivenBatch, PlacedValue


class Trial:
    """Feeds a rehearsal with the batches of a case."""

    def __init__(self, session: SparkSession, plan: Plan, case: Case, folder: Path) -> None:
        self._session, self._plan, self._case, self._folder = session, plan, case, folder
        self._offsets: dict[str, dict[tuple[str, int], int]] = {}
        self._fed: dict[str, list[Any]] = {}
        given = {name for each in case.batches for name in each.rows}
        self._given_steps = [each.name for each in plan.pipeline.steps if each.name in given]
        self._given_sources = [each.name for each in plan.pipeline.sources if each.name in given]
        self._missing = [each for each in plan.pipeline.sources if self._is_missing(each)]
        self._local = self._prepared()
        self._rehearsal = Rehearsal(session, self._local, folder)

    def _is_missing(self, source: Source) -> bool:
        """Whether the source is a database whose columns are unknown, because the case gives it no row."""
        is_read = isinstance(source.origin, TopicOrigin | FileOrigin) or source.format.schema is not None
        return not is_read and not self._rows(source.name)

    def _prepared(self) -> Plan:
        """The plan on local files, with sources for given steps and sinks for steps whose rows are expected."""
        computed = self._whole({})
        given = {name: computed.computed_columns(name) for name in self._given_steps}
        problems = Problems()
        for name, columns in given.items():
            check_columns(self._rows(name), columns, f"step '{name}'", problems)
        if problems.errors:
            raise ProblemList(problems)
        plan = plan_again(with_given_steps(self._plan, given)) if given else self._plan
        expected = {each.name for check in self._case.checks for each in check.rows if each.outlet is Outlet.STEP}
        read = {name: computed.columns(name) for name in appended_steps(plan, sorted(expected))}
        plan = plan_again(with_read_steps(plan.pipeline, read)) if read else plan
        pipeline = without_sources(plan, [each.name for each in self._missing])
        tables = [each.name for each in pipeline.sources if not isinstance(each.origin, TopicOrigin | FileOrigin)]
        fed = {*self._given_sources, *(f"{GIVEN}{each}" for each in given), *tables}
        return plan_again(with_local_ends(pipeline, self._folder, fed))

    def _rows(self, name: str) -> list[PlacedValue]:
        """The rows of all batches that are given to a source or step."""
        return [row for each in self._case.batches for row in each.rows.get(name, ())]

    def _whole(self, rows: Mapping[str, Sequence[Any]]) -> WholeInput:
        first = {
            each.name: [row.value for row in self._rows(each.name)]
            for each in self._plan.pipeline.sources
            if not isinstance(each.origin, TopicOrigin) and each.name in self._given_sources
        }
        return WholeInput(self._session, self._plan, {**first, **rows})

    def feed(self, batch: GivenBatch) -> None:
        problems = Problems()
        rows: dict[str, list[Any]] = {name: [row.value for row in given] for name, given in batch.rows.items()}
        for source in self._plan.pipeline.sources:
            if isinstance(source.origin, TopicOrigin) and source.name in rows:
                ends = self._offsets.setdefault(source.name, {})
                found = records_of(batch.rows[source.name], source, source.origin, problems, ends)
                rows[source.name] = [each.columns for each in found]
        fed = {}
        for name, found_rows in rows.items():
            self._fed.setdefault(name, []).extend(found_rows)
            is_step = name in self._given_steps
            is_read = is_step and self._plan.is_stream(name)
            source_name = f"{GIVEN}{name}" if is_step else name
            fed[source_name] = self._as_records(source_name, found_rows) if is_read else found_rows
        self._rehearsal.feed(fed)

    def _as_records(self, topic: str, rows: Sequence[Any]) -> list[dict[str, Any]]:
        """The rows of a step as records of a topic."""
        ends = self._offsets.setdefault(topic, {})
        first = ends.get((topic, 0), 0)
        ends[topic, 0] = first + len(rows)
        return [
            GivenRecord(None, json.dumps(row).encode(), topic, 0, offset, WRITTEN_AT, ()).columns
            for offset, row in enumerate(rows, first)
        ]

    def advance(self, advance: Advance) -> None:
        self._rehearsal.advance(advance.duration.milliseconds)

    def catch_up(self) -> None:
        self._rehearsal.run()

    def finish(self) -> None:
        """Ends the batches; closes windows unless the case decides itself how far time moves."""
        self._rehearsal.run()
        if self._case.closes_windows:
            self._rehearsal.finish()

    def close(self) -> None:
        self._rehearsal.close()

    @property
    def violations(self) -> tuple[Violations, ...]:
        return self._rehearsal.violations

    def results(self) -> Results:
        return Results(self._session, self._local.pipeline, self._folder)

    def is_topic(self, sink: str) -> bool:
        return any(each.name == sink and isinstance(each.target, TopicTarget) for each in self._plan.pipeline.sinks)

    def sink_records(self, sink: str) -> list[dict[str, Any]]:
        return self.results().records(self._sink(sink))

    def sink_rows(self, sink: str) -> list[dict[str, Any]]:
        found = self._sink(sink)
        return self.results().rows(found, lambda: self._whole(self._fed).written_schema(found.input))

    def view_rows(self, view: str) -> list[dict[str, Any]]:
        if view not in {each.name for each in self._local.pipeline.views}:
            raise nothing_given(self._missing[0])
        return self.results().table(view)

    def step_rows(self, step: str) -> list[dict[str, Any]]:
        """The rows that the stream appends; rows of aggregations and of static steps are computed as one batch."""
        sink = next((each for each in self._local.pipeline.sinks if each.name == f"{READ}{step}"), None)
        if sink is None:
            return self._whole(self._fed).rows(step)
        return self.results().rows(sink, lambda: self._whole(self._fed).written_schema(step))

    def _sink(self, sink: str) -> Sink:
        found = next((each for each in self._local.pipeline.sinks if each.name == sink), None)
        if found is None:
            raise nothing_given(self._missing[0])
        return found
