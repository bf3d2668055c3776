"""Rebuilds views and tables from the log into new tables, which replace the old ones in a transaction.

A table, or a view of latest rows, is rebuilt by a batch over the offsets that its flow has read, so that the stream
continues from there. A view of an aggregate depends on the state of its flow: a stream over the whole log builds both,
and the new checkpoint replaces the old one after the table. After a crash between the two, the old checkpoint continues
as before.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.model import (
    RunningAggregate,
    Sink,
    Start,
    TableTarget,
    TopicOrigin,
    View,
)
from odradek.pipelines.definition.operations import KeyedState
from odradek.pipelines.definition.vocabulary import SinkMode, StartAt, StateClock
from odradek.pipelines.operating.checkpoints import Checkpoints
from odradek.pipelines.operating.fingerprints import as_recorded, changes_fact
from odradek.pipelines.planning.flows import split_flows
from odradek.pipelines.planning.state import state_of
from odradek.pipelines.planning.streams import streaming_names
from odradek.pipelines.spark.continuing import exclusive_access, fingerprints_of
from odradek.pipelines.spark.engines.batch import run_batch
from odradek.pipelines.spark.engines.standard import StandardEngine
from odradek.pipelines.spark.launching import session_of
from odradek.pipelines.spark.reading.sources import Range, source_at
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.change_data import LONGEST_NAME, deletions_name
from odradek.pipelines.spark.writing.databases import database_url, parsed_url
from odradek.pipelines.spark.writing.table_swaps import drop_table, last_batch, swap_tables
from odradek.pipelines.spark.writing.topics import prepare_topics
from odradek.pipelines.spark.writing.warehouse import warehouse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline, Source, Step
    from odradek.pipelines.operating.status import Offsets
    from odradek.pipelines.spark.writing.topics import Cluster

SUFFIX = "__rebuilt"
ASIDE = ".rebuild"  # a checkpoint folder inside the pipeline's


class RebuildRefused(PipelineError):
    """The view or table cannot be rebuilt."""


def table_ends(pipeline: Pipeline) -> list[View | Sink]:
    return [*(each for each in pipeline.sinks if isinstance(each.target, TableTarget)), *pipeline.views]


def rebuildable(pipeline: Pipeline) -> dict[str, View | Sink]:
    """The views and table sinks of a pipeline by name; a view precedes a sink of the same name."""
    return {each.name: each for each in table_ends(pipeline)}


def rebuild_views(
    pipeline: Pipeline,
    ends: Sequence[View | Sink],
    say: Callable[[str], None],
    done: Callable[[View | Sink, int], None],
) -> None:
    """Rebuilds views and tables; calls `done` with each and its row count. Holds the checkpoint's lock."""
    for each in ends:
        refuse_lossy(pipeline, each)
    kept = Checkpoints(pipeline)
    if not kept.is_local:
        raise RebuildRefused(
            f"the checkpoints of {pipeline.name} are in {kept.place}, and rebuilding needs them in a local "
            "folder; copy them to one, rebuild with `checkpoints` set to the copy, and copy it back"
        )
    cluster = prepare_topics(pipeline)
    with exclusive_access(kept, pipeline.name), session_of(pipeline, say) as session:
        rebuilding = Rebuilding(session, pipeline, cluster, say)
        for each in ends:
            done(each, rebuilding.rebuild(each))


def refuse_lossy(pipeline: Pipeline, end: View | Sink) -> None:
    """Refuses a table whose rows a batch cannot compute as the stream did."""
    name = f"view {end.name}" if isinstance(end, View) else f"table sink {end.name}"
    graph = build_graph(pipeline)
    url, table = location_of(end, pipeline)
    other = next((each for each in table_ends(pipeline) if each != end and is_at(each, pipeline, url, table)), None)
    if other is not None:
        raise RebuildRefused(
            f"{name}: '{other.name}' writes the same table, and the new one would lack its rows; empty the table and "
            f"use `odradek pipeline reset {pipeline.place.file}`"
        )
    if parsed_url(url).get_backend_name() == "postgresql" and len((table + SUFFIX).encode()) > LONGEST_NAME:
        raise RebuildRefused(
            f"{name}: the new table would be {table}{SUFFIX}, of whose name PostgreSQL has {LONGEST_NAME} bytes only; "
            f"empty the table and use `odradek pipeline reset {pipeline.place.file}`"
        )
    before = [each for each in pipeline.steps if each.name in graph.upstream(end.input)]
    keyed = next((each for each in before if has_lost_timers(each, end)), None)
    if keyed is not None:
        raise RebuildRefused(
            f"{name}: step '{keyed.name}' keeps state with timers, which do not fire when the log is read again; "
            f"name the views that do not depend on it, or empty the table and use `odradek pipeline reset "
            f"{pipeline.place.file}`"
        )
    if isinstance(end, View) and end.changes is None:
        return
    streaming = streaming_names(pipeline, graph)
    if end.changes is not None and any(state_of(each, streaming) for each in before):
        raise RebuildRefused(
            f"{name}: its changes derive from state, and a batch over the log has rows of open groups, which the "
            f"stream would write later; use `odradek pipeline reset {pipeline.place.file}`"
        )
    is_appended = isinstance(end, Sink) and end.mode is not SinkMode.UPSERT and end.changes is None
    if is_appended and any(state_of(each, streaming) for each in before):
        raise RebuildRefused(
            f"{name}: its rows derive from state and are appended, so that the stream would append rows "
            "of open groups again; give the sink a key"
        )


def has_lost_timers(step: Step, end: View | Sink) -> bool:
    """Whether a rebuild lacks the rows of the step's timers.

    A view of an aggregate is rebuilt by a stream, in which timers of event time fire. It takes seconds, in which those
    of processing time do not. Everything else is rebuilt by a batch, in which no timer fires."""
    operation = step.operation
    if not isinstance(operation, KeyedState):
        return False
    is_stream = isinstance(end, View) and isinstance(end.content, RunningAggregate)
    return not is_stream or operation.clock is StateClock.PROCESSING


class Rebuilding:
    """Rebuilds views and tables one after the other."""

    def __init__(self, session: SparkSession, pipeline: Pipeline, cluster: Cluster, say: Callable[[str], None]) -> None:
        self._session = session
        self._pipeline = pipeline
        self._cluster = cluster
        self._checkpoints = Checkpoints(pipeline)
        self._say = say

    def rebuild(self, end: View | Sink) -> int:
        """Rebuilds the view or table; returns its row count."""
        url, name = location_of(end, self._pipeline)
        new = name + SUFFIX
        drop_table(url, new)
        drop_table(url, deletions_name(new))
        if isinstance(end, View) and isinstance(end.content, RunningAggregate):
            self._fill_aggregate(end)
        else:
            self._fill_from_read(end, url)
        others = {deletions_name(name): deletions_name(new)} if end.changes is not None else {}
        rows = swap_tables(url, name, new, others)
        warehouse(url).forget(name, new)
        if isinstance(end, View) and isinstance(end.content, RunningAggregate):
            self._adopt_checkpoint(end)
        elif end.changes is not None:
            self._store_changes(end)
        return rows

    def _fill_from_read(self, end: View | Sink, url: str) -> None:
        """Fills the new table by a batch over the offsets that the stream has read."""
        flow = self._flow_of(end)
        read = self._read_offsets(end, flow, url)
        alone = pipeline_for(end, self._pipeline)
        if read is None:
            self._say(f"{end.name}: the stream has not written it; rebuilding from the whole log")
            run_batch(self._session, alone, self._cluster)
            return
        self._say(f"{end.name}: rebuilding from the offsets that the stream has read, {offsets_text(read)}")
        began = self._checkpoints.first_positions(flow)
        latest = {each.name for each in self._pipeline.sources if starts_latest(each)}
        sources = [by_name(each, read) for each in alone.sources]
        sources = [source_at(each, offsets_start(began)) if each.name in latest else each for each in sources]
        for each in sources:
            if each.name in latest and is_read_from_first(each):
                self._say(f"{end.name}: the offset at which source {each.name} began is not known; reading all of it")
        alone = replace(alone, sources=tuple(sources))
        # Partitions that the stream has not read, because they are new, are left to it.
        run_batch(self._session, alone, self._cluster, Range(end=offsets_start(read), only_named=True))

    def _fill_aggregate(self, view: View) -> None:
        aside = self._checkpoints.folder / ASIDE
        shutil.rmtree(aside, ignore_errors=True)
        self._say(f"{view.name}: rebuilding with its state from the whole log")
        alone = replace(pipeline_for(view, self._pipeline), checkpoints=str(aside))
        running = StandardEngine(self._session, alone, self._cluster).start(until_caught_up=True)
        try:
            running.wait(lambda: False)
        finally:
            running.stop()

    def _adopt_checkpoint(self, view: View) -> None:
        """Replaces the flow's checkpoint by the one that the new table was built with."""
        aside = self._checkpoints.folder / ASIDE
        flow = f"view-{view.name}"
        self._checkpoints.forget(flow)
        made = aside / (flow + SUFFIX)
        if made.exists():
            made.rename(self._checkpoints.flow_folder(flow))
        shutil.rmtree(aside)
        before = self._checkpoints.definition()
        if before is not None:
            now = fingerprints_of(as_recorded(self._pipeline, before), self._cluster)
            self._checkpoints.store_definition(replace(before, flows={**before.flows, flow: now.flows[flow]}))

    def _store_changes(self, end: View | Sink) -> None:
        """Stores how the new table applies changes, which may differ from the old one."""
        before = self._checkpoints.definition()
        if before is None:
            return
        now = fingerprints_of(as_recorded(self._pipeline, before), self._cluster)
        what = changes_fact(end)
        for flow, each in before.flows.items():
            own = now.flows.get(flow)
            if own is not None and what in own.facts:
                facts = {**each.facts, what: own.facts[what]}
                self._checkpoints.store_definition(
                    replace(before, flows={**before.flows, flow: replace(each, facts=facts)})
                )

    def _flow_of(self, end: View | Sink) -> str:
        recorded = as_recorded(self._pipeline, self._checkpoints.definition())
        flows = split_flows(recorded, build_graph(recorded))
        return next(each.name for each in flows if end in (*each.views, *each.sinks))

    def _read_offsets(self, end: View | Sink, flow: str, url: str) -> Offsets | None:
        """The end offsets of the last batch that reached the database; None if there was none."""
        kept = next((each for each in self._checkpoints.flows() if each.flow == flow), None)
        batch = None if kept is None or kept.query is None else last_batch(url, kept.query)
        if batch is None:
            return None
        found = self._checkpoints.entry_of(flow, batch)
        if found is None:
            raise RebuildRefused(
                f"{end.name}: the checkpoint of its flow {flow} does not have the end of batch {batch}; "
                "run the pipeline with --until-caught-up, then rebuild"
            )
        if found.ambiguous:
            raise RebuildRefused(
                f"{end.name}: two sources of topic {', '.join(found.ambiguous)} are at different offsets; run the "
                "pipeline with --until-caught-up, then rebuild"
            )
        return found.positions


def location_of(end: View | Sink, pipeline: Pipeline) -> tuple[str, str]:
    """The database and the name of the table of a view or table sink."""
    if isinstance(end, View):
        return database_url(pipeline, end.url), end.name
    assert isinstance(end.target, TableTarget)
    return database_url(pipeline, end.target.url), end.target.table


def is_at(end: View | Sink, pipeline: Pipeline, url: str, table: str) -> bool:
    own_url, own_table = location_of(end, pipeline)
    return (own_url, own_table.lower()) == (url, table.lower())


def pipeline_for(end: View | Sink, pipeline: Pipeline) -> Pipeline:
    """The pipeline reduced to the new table and its inputs. A batch cannot start at the end: it reads all."""
    needed = set(build_graph(pipeline).upstream(end.input))
    sources = tuple(
        source_at(each, Start()) if starts_latest(each) else each for each in pipeline.sources if each.name in needed
    )
    steps = tuple(each for each in pipeline.steps if each.name in needed)
    alone = replace(pipeline, sources=sources, steps=steps, sinks=(), views=(), dead_letters=None)
    if isinstance(end, View):
        return replace(alone, views=(replace(end, name=end.name + SUFFIX),))
    assert isinstance(end.target, TableTarget)
    return replace(alone, sinks=(replace(end, target=replace(end.target, table=end.target.table + SUFFIX)),))


def starts_latest(source: Source) -> bool:
    """Whether a stream begins at the end; a static topic is read in the same way by streams and batches."""
    return source.is_stream and isinstance(source.origin, TopicOrigin) and source.origin.start.at is StartAt.LATEST


def is_read_from_first(source: Source) -> bool:
    return isinstance(source.origin, TopicOrigin) and source.origin.start.at is not StartAt.OFFSETS


def by_name(source: Source, read: Offsets) -> Source:
    """The stream with the topics that were read in place of a pattern, because offsets need topic names."""
    origin = source.origin
    if not source.is_stream or not isinstance(origin, TopicOrigin) or origin.pattern is None:
        return source
    topics = tuple(topic for topic in read if re.fullmatch(origin.pattern, topic))
    return replace(source, origin=replace(origin, topics=topics, pattern=None))


def offsets_start(offsets: Offsets) -> Start:
    numbered = {topic: {int(each): at for each, at in found.items()} for topic, found in offsets.items()}
    return Start(StartAt.OFFSETS, offsets=numbered)


def offsets_text(offsets: Offsets) -> str:
    counts = {topic: sum(each.values()) for topic, each in offsets.items()}
    return ", ".join(f"{n:,} offset{'' if n == 1 else 's'} of {topic}" for topic, n in counts.items()) or "nothing"
