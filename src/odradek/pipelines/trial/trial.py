"""The run of one case: the pipeline on the case's rows, and its results so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from odradek.pipelines.definition.model import FileOrigin, TopicOrigin, TopicTarget
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.rehearsal.local_pipeline import with_local_ends, without_sources
from odradek.pipelines.spark.rehearsal.rehearsal import Rehearsal
from odradek.pipelines.spark.rehearsal.results import Results
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.trial.given import records_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Sink, Source, View
    from odradek.pipelines.planning.plan import Plan
    from odradek.pipelines.spark.computing.counts import Violations
    from odradek.pipelines.trial.model import Advance, Case, GivenBatch


Declared = TypeVar("Declared", "Sink", "View")


class NothingGiven(PipelineError):
    """A source for which the test must give rows."""


class Trial:
    """Feeds a rehearsal with the batches of a case."""

    def __init__(self, session: SparkSession, plan: Plan, case: Case, folder: Path) -> None:
        self._session, self._plan, self._case, self._folder = session, plan, case, folder
        self._offsets: dict[str, dict[tuple[str, int], int]] = {}
        given = {name for each in case.batches for name, rows in each.rows.items() if rows}
        self._missing = [each for each in plan.pipeline.sources if has_unknown_columns(each) and each.name not in given]
        pipeline = without_sources(plan, [each.name for each in self._missing])
        tables = [each.name for each in pipeline.sources if not isinstance(each.origin, TopicOrigin | FileOrigin)]
        fed = {*tables, *(name for each in case.batches for name in each.rows)}
        self._local = plan_again(with_local_ends(pipeline, folder, fed))
        self._rehearsal = Rehearsal(session, self._local, folder)

    def feed(self, batch: GivenBatch) -> None:
        rows: dict[str, list[Any]] = {name: [row.value for row in given] for name, given in batch.rows.items()}
        for source in self._plan.pipeline.sources:
            if isinstance(source.origin, TopicOrigin) and source.name in rows:
                ends = self._offsets.setdefault(source.name, {})
                found = records_of(batch.rows[source.name], source, source.origin, Problems(), ends)
                rows[source.name] = [each.columns for each in found]
        self._rehearsal.feed(rows)

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

    def sink_records(self, name: str) -> list[dict[str, Any]]:
        return self.results().records(self._declared(self._local.pipeline.sinks, name))

    def sink_rows(self, name: str) -> list[dict[str, Any]]:
        return self.results().rows(self._declared(self._local.pipeline.sinks, name))

    def view_rows(self, name: str) -> list[dict[str, Any]]:
        return self.results().table(self._declared(self._local.pipeline.views, name).name)

    def _declared(self, ends: Sequence[Declared], name: str) -> Declared:
        """The sink or view of this name, unless a source without rows is before it."""
        found = next((each for each in ends if each.name == name), None)
        if found is not None:
            return found
        source = self._missing[0]
        raise NothingGiven(
            f"{source.place}: source '{source.name}' has no schema; give it at least one row, or declare its columns"
        )


def has_unknown_columns(source: Source) -> bool:
    """Whether the source is a database whose columns only its rows show."""
    return not isinstance(source.origin, TopicOrigin | FileOrigin) and source.format.schema is None
