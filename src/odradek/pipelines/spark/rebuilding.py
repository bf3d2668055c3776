"""Rebuilds views from the log into new tables, which replace the old ones in a transaction.

A view of latest rows is rebuilt by a batch over the offsets that its flow has read, so that the stream continues from
there. A view of an aggregate depends on the state of its flow: a stream over the whole log builds both, and the new
checkpoint replaces the old one after the table. After a crash between the two, the old checkpoint continues as before.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.model import LatestRows, Start, TopicOrigin
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.operating.checkpoint_files import Checkpoints
from odradek.pipelines.operating.fingerprints import as_recorded
from odradek.pipelines.planning.flows import split_flows
from odradek.pipelines.spark.continuing import exclusive_access, fingerprints_of, source_at
from odradek.pipelines.spark.engines.batch import run_batch
from odradek.pipelines.spark.engines.standard import StandardEngine
from odradek.pipelines.spark.failures import PipelineError
from odradek.pipelines.spark.launching import session_of
from odradek.pipelines.spark.sinks.batches import database_url
from odradek.pipelines.spark.sinks.tables import drop_table, last_batch, swap_tables
from odradek.pipelines.spark.sinks.warehouse import warehouse
from odradek.pipelines.spark.sources import Range
from odradek.pipelines.spark.topics import prepare_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline, Source, View
    from odradek.pipelines.operating.status import Offsets
    from odradek.pipelines.spark.topics import Cluster

SUFFIX = "__rebuilt"
ASIDE = ".rebuild"  # a checkpoint folder inside the pipeline's


class RebuildRefused(PipelineError):
    """The view cannot be rebuilt."""


def rebuild_views(
    pipeline: Pipeline, views: Sequence[View], say: Callable[[str], None], done: Callable[[View, int], None]
) -> None:
    """Rebuilds the views; calls `done` with each view and its row count. Holds the checkpoint's lock."""
    kept = Checkpoints(pipeline)
    if not kept.is_local:
        raise RebuildRefused(
            f"the checkpoints of {pipeline.name} are in {kept.place}, and rebuilding needs them in a local "
            "folder; copy them to one, rebuild with `checkpoints` set to the copy, and copy it back"
        )
    cluster = prepare_topics(pipeline)
    with exclusive_access(kept, pipeline.name), session_of(pipeline, say) as session:
        rebuilding = Rebuilding(session, pipeline, cluster, say)
        for view in views:
            done(view, rebuilding.rebuild(view))


class Rebuilding:
    """Rebuilds views one after the other."""

    def __init__(self, session: SparkSession, pipeline: Pipeline, cluster: Cluster, say: Callable[[str], None]) -> None:
        self._session = session
        self._pipeline = pipeline
        self._cluster = cluster
        self._checkpoints = Checkpoints(pipeline)
        self._url = database_url(pipeline, None)
        self._say = say

    def rebuild(self, view: View) -> int:
        """Rebuilds the view; returns its row count."""
        new = view.name + SUFFIX
        drop_table(self._url, new)
        is_latest = isinstance(view.content, LatestRows)
        if is_latest:
            self._fill_latest(view)
        else:
            self._fill_aggregate(view)
        rows = swap_tables(self._url, view.name, new)
        warehouse(self._url).forget(view.name, new)
        if not is_latest:
            self._adopt_checkpoint(view)
        return rows

    def _fill_latest(self, view: View) -> None:
        read = self._read_offsets(view)
        if read is None:
            self._say(f"{view.name}: the stream has not written it; rebuilding from the whole log")
            run_batch(self._session, pipeline_for_view(view, self._pipeline), self._cluster)
            return
        self._say(f"{view.name}: rebuilding from the offsets that the stream has read, {offsets_text(read)}")
        end = Start(StartAt.OFFSETS, offsets={topic: numbered(each) for topic, each in read.items()})
        alone = pipeline_for_view(view, self._pipeline)
        alone = replace(alone, sources=tuple(by_name(each, read) for each in alone.sources))
        run_batch(self._session, alone, self._cluster, Range(end=end))

    def _fill_aggregate(self, view: View) -> None:
        aside = self._checkpoints.folder / ASIDE
        shutil.rmtree(aside, ignore_errors=True)
        self._say(f"{view.name}: rebuilding with its state from the whole log")
        alone = replace(pipeline_for_view(view, self._pipeline), checkpoints=str(aside))
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

    def _read_offsets(self, view: View) -> Offsets | None:
        """The end offsets of the last batch that reached the database; None if there was none."""
        recorded = as_recorded(self._pipeline, self._checkpoints.definition())
        flows = split_flows(recorded, build_graph(recorded))
        flow = next(each.name for each in flows if view in each.views)
        kept = next((each for each in self._checkpoints.flows() if each.flow == flow), None)
        batch = None if kept is None or kept.query is None else last_batch(self._url, kept.query)
        if batch is None:
            return None
        found = self._checkpoints.positions_after(flow, batch)
        if found is None:
            raise RebuildRefused(
                f"view {view.name}: the checkpoint of its flow {flow} does not have the end of batch {batch}; "
                "run the pipeline with --until-caught-up, then rebuild"
            )
        return found


def pipeline_for_view(view: View, pipeline: Pipeline) -> Pipeline:
    """The pipeline reduced to the new table and its inputs. A source with start: latest is read from the start."""
    needed = set(build_graph(pipeline).upstream(view.input))
    sources = tuple(
        source_at(each, Start())
        if isinstance(each.origin, TopicOrigin) and each.origin.start.at is StartAt.LATEST
        else each
        for each in pipeline.sources
        if each.name in needed
    )
    steps = tuple(each for each in pipeline.steps if each.name in needed)
    views = (replace(view, name=view.name + SUFFIX),)
    return replace(pipeline, sources=sources, steps=steps, sinks=(), views=views, dead_letters=None)


def by_name(source: Source, read: Offsets) -> Source:
    """The origin with the topics that were read in place of a pattern, because offsets need topic names."""
    origin = source.origin
    if not isinstance(origin, TopicOrigin) or origin.pattern is None:
        return source
    topics = tuple(topic for topic in read if re.fullmatch(origin.pattern, topic))
    return replace(source, origin=replace(origin, topics=topics, pattern=None))


def numbered(partitions: dict[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in partitions.items()}


def offsets_text(offsets: Offsets) -> str:
    return ", ".join(f"{sum(each.values()):,} offsets of {topic}" for topic, each in offsets.items()) or "nothing"
