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
    from odradek.pipelines.trial.model import Case, GivenBatch


Declared = TypeVar("Declared", "Sink", "View")


class NothingGiven(PipelineError):
    """A source for which the test must give rows."""


class Trial(Rehearsal):
    """A rehearsal that is fed with the batches of a case."""

    def __init__(self, session: SparkSession, plan: Plan, case: Case, folder: Path) -> None:
        self._declared = plan.pipeline
        self._offsets: dict[str, dict[tuple[str, int], int]] = {}
        given = {name for each in case.batches for name, rows in each.rows.items() if rows}
        self._missing = [each for each in plan.pipeline.sources if has_unknown_columns(each) and each.name not in given]
        pipeline = without_sources(plan, [each.name for each in self._missing])
        tables = [each.name for each in pipeline.sources if not isinstance(each.origin, TopicOrigin | FileOrigin)]
        fed = {*tables, *(name for each in case.batches for name in each.rows)}
        self._local = with_local_ends(pipeline, folder, fed)
        super().__init__(session, plan_again(self._local), folder)

    def feed_batch(self, batch: GivenBatch) -> None:
        rows: dict[str, list[Any]] = {name: [row.value for row in given] for name, given in batch.rows.items()}
        for source in self._declared.sources:
            if isinstance(source.origin, TopicOrigin) and source.name in rows:
                ends = self._offsets.setdefault(source.name, {})
                found = records_of(batch.rows[source.name], source, source.origin, Problems(), ends)
                rows[source.name] = [each.columns for each in found]
        self.feed(rows)

    @property
    def results(self) -> Results:
        return Results(self._session, self._local, self._folder)

    def sink(self, name: str) -> Sink:
        return self._found(self._local.sinks, name)

    def view(self, name: str) -> View:
        return self._found(self._local.views, name)

    def is_topic(self, sink: str) -> bool:
        return any(each.name == sink and isinstance(each.target, TopicTarget) for each in self._declared.sinks)

    def _found(self, ends: Sequence[Declared], name: str) -> Declared:
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
