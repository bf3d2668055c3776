"""Runs cases on one Spark session and compares their results with the expected ones."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.model import FileOrigin, TopicOrigin, TopicTarget
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.letters.letter import PIPELINE_HEADER, REASON_HEADER, SOURCE_HEADER, STEP_HEADER, TOPIC_HEADER
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.rehearsal.local_pipeline import Results, text_of, with_local_ends, without_sources
from odradek.pipelines.spark.rehearsal.rehearsal import Rehearsal
from odradek.pipelines.spark.sessions.failures import PipelineError, plain_message
from odradek.pipelines.spark.sessions.user_code import import_from
from odradek.pipelines.trial.comparing import Difference, FoundRow, compare_rows, parsed
from odradek.pipelines.trial.given import records_of
from odradek.pipelines.trial.model import Advance, GivenBatch, Outlet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Sink, Source, View
    from odradek.pipelines.planning.plan import Plan
    from odradek.pipelines.spark.computing.counts import Violations
    from odradek.pipelines.trial.model import Case, CaseFile, Check, ExpectedRows, Turn

SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "1"}
MASTER = "local[2]"
LETTER_COLUMNS = {"reason": REASON_HEADER, "step": STEP_HEADER, "topic": TOPIC_HEADER, "source": SOURCE_HEADER}


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a case."""

    file: str
    case: Case
    differences: tuple[Difference, ...]
    seconds: float

    @property
    def is_passed(self) -> bool:
        return not self.differences


def run_file(session: SparkSession, cases: CaseFile, only: str | None = None) -> Iterator[Result]:
    """Runs the cases of a file and yields each result; uses the definition's Spark SQL settings."""
    own = session.newSession()
    for key, value in {**SETTINGS, **cases.plan.pipeline.spark}.items():
        if key.startswith("spark.sql.") and own.conf.isModifiable(key):
            own.conf.set(key, value)
    try:
        for case in cases.cases:
            if only in {None, case.name}:
                began_at = time.perf_counter()
                differences = tuple(run_case(own, cases, case))
                yield Result(cases.file, case, differences, time.perf_counter() - began_at)
    finally:
        forget_modules(cases.plan.pipeline.directory)


def run_case(session: SparkSession, cases: CaseFile, case: Case) -> Iterator[Difference]:
    try:
        with (
            tempfile.TemporaryDirectory(prefix="odradek-test-") as folder,
            closing(Trial(session, cases.plan, case, Path(folder))) as trial,
        ):
            found = list(compared(trial, case))
    except Exception as error:
        yield from compare_errors(case, str(error) if isinstance(error, PipelineError) else plain_message(error))
        return
    yield from compare_errors(case, None)
    yield from found


def compare_errors(case: Case, message: str | None) -> Iterator[Difference]:
    expected = case.error
    if expected is None:
        if message is not None:
            yield Difference("the pipeline", "error", case.place, message)
    elif message is None or expected.value not in message:
        found = ", but there was none" if message is None else f", found: {message}"
        words = f"expected the error '{expected.value}'{found}"
        yield Difference("the pipeline", "error", expected.place, words, expected.value, message)


def compared(trial: Trial, case: Case) -> Iterator[Difference]:
    *before, last = case.turns
    for turn in before:
        yield from turned(trial, turn)
    trial.run()
    if case.closes_windows:
        trial.finish()
    yield from turned(trial, last)


def turned(trial: Trial, turn: Turn) -> Iterator[Difference]:
    if isinstance(turn, GivenBatch):
        trial.feed_batch(turn)
    elif isinstance(turn, Advance):
        trial.advance(turn.duration.milliseconds)
    else:
        trial.run()
        yield from compare_counts(turn, trial.violations)
        for expected in turn.rows:
            yield from compare_rows(expected, found_rows(trial, expected))


def compare_counts(check: Check, violations: Iterable[Violations]) -> Iterator[Difference]:
    found = {(each.step, each.expectation): each.rows for each in violations}
    for each in check.counts:
        rows = found.get((each.step, each.expectation), 0)
        if rows != each.count:
            message = f"{each.count} rows expected that do not meet it, {rows} found"
            yield Difference(each.label, "count", each.place, message, each.count, rows)


def found_rows(trial: Trial, expected: ExpectedRows) -> list[FoundRow]:
    name, results = expected.name, trial.results
    if expected.outlet is Outlet.DEAD_LETTERS:
        return list(map(dead_letter, results.dead_letters()))
    if expected.outlet is Outlet.VIEW:
        return list(map(FoundRow, results.table(trial.view(name).name)))
    sink = trial.sink(name)
    return list(map(record_row, results.records(sink)) if trial.is_topic(name) else map(FoundRow, results.rows(sink)))


def record_row(record: dict[str, Any]) -> FoundRow:
    """The fields of a record's JSON value, and the record's own columns."""
    value = text_of(record["value"])
    columns = parsed(value) if value is not None else None
    around = {
        "_key": text_of(record["key"]),
        "_value": value,
        "_headers": {each["key"]: text_of(each["value"]) for each in record["headers"]},
        "_topic": record["topic"],
    }
    return FoundRow(columns if isinstance(columns, dict) else {}, around)


def dead_letter(record: dict[str, Any]) -> FoundRow:
    headers = {
        each["key"]: text_of(each["value"]) for each in reversed(record["headers"])
    }  # the first of a name counts
    headers.pop(PIPELINE_HEADER, None)
    columns = {name: headers.pop(header, None) for name, header in LETTER_COLUMNS.items()}
    return FoundRow({**columns, "key": text_of(record["key"]), "value": text_of(record["value"]), "headers": headers})


def forget_modules(directory: str) -> None:
    """Unloads the modules of a definition's folder, because the next definition may have modules of the same names."""
    folder = Path(directory).resolve()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).resolve().is_relative_to(folder) and is_in_folder(name, folder):
            del sys.modules[name]
    import_from.cache_clear()  # a later file of tests in this folder imports them again


def is_in_folder(name: str, folder: Path) -> bool:
    """Whether the module was imported from the folder itself, and not from a package that is installed below it."""
    top = name.partition(".")[0]
    return (folder / f"{top}.py").exists() or (folder / top / "__init__.py").exists()


Declared = TypeVar("Declared", "Sink", "View")


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
        raise PipelineError(
            f"{source.place}: source '{source.name}' has no schema; give it at least one row, or declare its columns"
        )


def has_unknown_columns(source: Source) -> bool:
    """Whether the source is a database whose columns only its rows show."""
    return not isinstance(source.origin, TopicOrigin | FileOrigin) and source.format.schema is None
