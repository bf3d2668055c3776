"""Rebuilds views and tables from the log into new tables, which replace the old ones in a transaction.

A table is rebuilt by a batch over the offsets that its flow has read, so that the stream continues from there. A view
of an aggregate has a flow of its own, whose state may be another one since: a stream over the whole log builds both,
and the new checkpoint replaces the old one after the table. After a crash between the two, the old checkpoint continues
as before.
"""

from __future__ import annotations

import re
import shutil
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from odradek.pipelines.definition.model import Start, TableTarget, TopicOrigin, View
from odradek.pipelines.definition.operations import KeyedState
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.operating.checkpoints import Checkpoints
from odradek.pipelines.operating.fingerprints import Fingerprints, fingerprints
from odradek.pipelines.planning.plan import EndMode
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.planning.targets import stored_in
from odradek.pipelines.spark.engines.standard import StandardEngine, run_batch
from odradek.pipelines.spark.launching import session_of
from odradek.pipelines.spark.reading.sources import Range, source_at
from odradek.pipelines.spark.resuming import clusters_of, exclusive_access
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sessions.session import defaults_for
from odradek.pipelines.spark.writing.databases import connect, database_errors, database_url, parsed_url
from odradek.pipelines.spark.writing.table_changes import LONGEST_NAME, deletions_name
from odradek.pipelines.spark.writing.topics import prepare_topics
from odradek.pipelines.spark.writing.warehouse import BATCH_TABLE, warehouse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession
    from sqlalchemy.engine import Connection

    from odradek.pipelines.definition.model import Pipeline, Sink, Source
    from odradek.pipelines.operating.status import Offsets
    from odradek.pipelines.planning.plan import End, Flow, Plan
    from odradek.pipelines.spark.writing.topics import Cluster

SUFFIX = "__rebuilt"
ASIDE = ".rebuild"  # a checkpoint folder inside the pipeline's
NO_TABLES: Mapping[str, str] = {}


def rebuildable(pipeline: Pipeline) -> dict[str, View | Sink]:
    """The views and table sinks of a pipeline by name; a view precedes a sink of the same name."""
    tables = {each.name: each for each in pipeline.sinks if isinstance(each.target, TableTarget)}
    return {**tables, **{each.name: each for each in pipeline.views}}


def rebuild_views(
    pipeline: Pipeline,
    ends: Sequence[View | Sink],
    say: Callable[[str], None],
    done: Callable[[View | Sink, int], None],
) -> None:
    """Rebuilds views and tables; calls `done` with each and its row count. Holds the checkpoint's lock."""
    plan = plan_again(pipeline)
    chosen = [(each, end_of(plan, each.name, is_view=isinstance(each, View))) for each in ends]
    for _, end in chosen:
        refuse_lossy(plan, end)
    kept = Checkpoints(pipeline)
    if not kept.is_local:
        raise PipelineError(
            f"the checkpoints of {pipeline.name} are in {kept.place}, and rebuilding needs them in a local "
            "folder; copy them to one, rebuild with `checkpoints` set to the copy, and copy it back"
        )
    cluster = prepare_topics(pipeline)
    with exclusive_access(kept, pipeline.name), session_of(pipeline, say) as session:
        rebuilding = Rebuilding(session, plan, cluster, say)
        for declared, end in chosen:
            done(declared, rebuilding.rebuild(end))


def end_of(plan: Plan, name: str, *, is_view: bool) -> End:
    return next(each for each in plan.ends if each.name == name and each.is_view is is_view)


def refuse_lossy(plan: Plan, end: End) -> None:
    """Refuses a table whose rows a batch cannot compute as the stream did."""
    url, table = location_of(end, plan.pipeline)
    reset = f"use `odradek pipeline reset {plan.pipeline.place.file}`"
    where = stored_in(end, plan.pipeline)
    for other in plan.ends:
        if other != end and stored_in(other, plan.pipeline) == where:
            raise PipelineError(
                f"{end.described}: '{other.name}' writes the same table, and the new one would lack its rows; empty "
                f"the table and {reset}"
            )
    if parsed_url(url).get_backend_name() == "postgresql" and len((table + SUFFIX).encode()) > LONGEST_NAME:
        raise PipelineError(
            f"{end.described}: the new table would be {table}{SUFFIX}, of whose name PostgreSQL has {LONGEST_NAME} "
            f"bytes only; empty the table and {reset}"
        )
    keyed = next((name for name in plan.upstream(end.input) if isinstance(plan.table(name).made_by, KeyedState)), None)
    if keyed is not None:
        raise PipelineError(
            f"{end.described}: step '{plan.shown(keyed)}' keeps state with timers, which do not fire when the log is "
            f"read again; name the views that do not depend on it, or empty the table and {reset}"
        )
    if not plan.path(end.input).state or end.mode is EndMode.KEYED:
        return
    if end.mode is EndMode.CHANGES:
        raise PipelineError(
            f"{end.described}: its changes derive from state, and a batch over the log has rows of open groups, which "
            f"the stream would write later; {reset}"
        )
    raise PipelineError(
        f"{end.described}: its rows derive from state and are appended, so that the stream would append rows of open "
        "groups again; give the sink a key"
    )


def flow_of(plan: Plan, end: End) -> Flow:
    return next(each for each in plan.flows if end in each.ends)


def location_of(end: End, pipeline: Pipeline) -> tuple[str, str]:
    """The database and the name of a table."""
    assert isinstance(end.target, TableTarget)
    return database_url(pipeline, end.target.url), end.target.table


class Rebuilding:
    """Rebuilds views and tables one after the other."""

    def __init__(self, session: SparkSession, plan: Plan, cluster: Cluster, say: Callable[[str], None]) -> None:
        self._session, self._plan, self._cluster, self._say = session, plan, cluster, say
        self._checkpoints = Checkpoints(plan.pipeline)

    def rebuild(self, end: End) -> int:
        """Rebuilds a table; returns its row count."""
        url, name = location_of(end, self._plan.pipeline)
        new = name + SUFFIX
        drop_table(url, new)
        drop_table(url, deletions_name(new))
        # A view of an aggregate has a flow of its own, with state for it alone.
        has_state = isinstance(self._plan.table(flow_of(self._plan, end).root).owner, View)
        if has_state:
            self._fill_by_stream(end)
        else:
            self._fill_by_batch(end, url)
        is_change_data = end.mode is EndMode.CHANGES
        rows = swap_tables(url, name, new, {deletions_name(name): deletions_name(new)} if is_change_data else {})
        warehouse(url).forget(name, new)
        if has_state:
            self._adopt_checkpoint(end)
        elif is_change_data:
            self._store_fingerprint(flow_of(self._plan, end).name)
        return rows

    def _fill_by_batch(self, end: End, url: str) -> None:
        """Fills the new table by a batch over the offsets that the stream has read."""
        flow, alone = flow_of(self._plan, end).name, pipeline_for(end, self._plan)
        read = self._read_offsets(end, flow, url)
        if read is None:
            self._say(f"{end.name}: the stream has not written it; rebuilding from the whole log")
            run_batch(self._session, plan_again(alone), self._cluster)
            return
        self._say(f"{end.name}: rebuilding from the offsets that the stream has read, {offsets_text(read)}")
        began = self._checkpoints.first_positions(flow)
        latest = {each.name for each in self._plan.pipeline.sources if starts_latest(each)}
        sources = [by_name(each, read) for each in alone.sources]
        sources = [source_at(each, offsets_start(began)) if each.name in latest else each for each in sources]
        for each in sources:
            is_read_whole = isinstance(each.origin, TopicOrigin) and each.origin.start.at is not StartAt.OFFSETS
            if each.name in latest and is_read_whole:
                self._say(f"{end.name}: the offset at which source {each.name} began is not known; reading all of it")
        plan = plan_again(replace(alone, sources=tuple(sources)))
        # Partitions that the stream has not read, because they are new, are left to it.
        run_batch(self._session, plan, self._cluster, Range(end=offsets_start(read), only_named=True))

    def _fill_by_stream(self, end: End) -> None:
        aside = self._checkpoints.folder / ASIDE
        shutil.rmtree(aside, ignore_errors=True)
        self._say(f"{end.name}: rebuilding with its state from the whole log")
        alone = plan_again(replace(pipeline_for(end, self._plan), checkpoints=str(aside)))
        running = StandardEngine(self._session, alone, self._cluster).start(until_caught_up=True)
        try:
            running.wait(lambda: False)
        finally:
            running.stop()

    def _adopt_checkpoint(self, end: End) -> None:
        """Replaces the flow's checkpoint by the one that the new table was built with."""
        flow = flow_of(self._plan, end).name
        made = self._checkpoints.folder / ASIDE / (flow + SUFFIX)
        self._checkpoints.forget(flow)
        if made.exists():
            made.rename(self._checkpoints.flow_folder(flow))
        shutil.rmtree(self._checkpoints.folder / ASIDE)
        self._store_fingerprint(flow)

    def _store_fingerprint(self, flow: str) -> None:
        """Stores what the new table depends on, which may differ from the old one."""
        found, pipeline = self._checkpoints.recorded(), self._plan.pipeline
        before = None if found is None else Fingerprints.of_object(found)
        if before is None:
            return
        defaults = defaults_for(pipeline.master, pipeline.spark)
        now = fingerprints(self._plan, defaults, clusters_of(pipeline, self._cluster))
        made = replace(before, flows={**before.flows, flow: now.flows[flow]})
        self._checkpoints.store_definition(made.as_object())

    def _read_offsets(self, end: End, flow: str, url: str) -> Offsets | None:
        """The end offsets of the last batch that reached the database; None if there was none."""
        kept = next((each for each in self._checkpoints.flows() if each.flow == flow), None)
        batch = None if kept is None or kept.query is None else last_batch(url, kept.query)
        if batch is None:
            return None
        found = self._checkpoints.entry_of(flow, batch)
        if found is None:
            raise PipelineError(
                f"{end.name}: the checkpoint of its flow {flow} does not have the end of batch {batch}; "
                "run the pipeline with --until-caught-up, then rebuild"
            )
        if found.ambiguous:
            raise PipelineError(
                f"{end.name}: two sources of topic {', '.join(found.ambiguous)} are at different offsets; run the "
                "pipeline with --until-caught-up, then rebuild"
            )
        return found.positions


def pipeline_for(end: End, plan: Plan) -> Pipeline:
    """The pipeline reduced to the new table and its inputs. A batch cannot start at the end: it reads all."""
    pipeline, needed = plan.pipeline, {plan.shown(name) for name in plan.upstream(end.input)}
    sources = tuple(
        source_at(each, Start()) if starts_latest(each) else each for each in pipeline.sources if each.name in needed
    )
    steps = tuple(each for each in pipeline.steps if each.name in needed)
    alone = replace(pipeline, sources=sources, steps=steps, sinks=(), views=(), dead_letters=None)
    if end.is_view:
        view = next(each for each in pipeline.views if each.name == end.name)
        return replace(alone, views=(replace(view, name=view.name + SUFFIX),))
    sink = next(each for each in pipeline.sinks if each.name == end.name)
    assert isinstance(sink.target, TableTarget)
    return replace(alone, sinks=(replace(sink, target=replace(sink.target, table=sink.target.table + SUFFIX)),))


def starts_latest(source: Source) -> bool:
    """Whether a stream begins at the end; a static topic is read in the same way by streams and batches."""
    return source.is_stream and isinstance(source.origin, TopicOrigin) and source.origin.start.at is StartAt.LATEST


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


@contextmanager
def changing(url: str) -> Iterator[Connection]:
    engine = connect(url)
    try:
        with database_errors(engine.url), engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def last_batch(url: str, query: str) -> int | None:
    """The last batch of a query that reached the database."""
    with changing(url) as connection:
        if not sa.inspect(connection).has_table(BATCH_TABLE):
            return None
        batches = sa.table(BATCH_TABLE, sa.column("query"), sa.column("batch"))
        found = connection.execute(sa.select(batches.c.batch).where(batches.c.query == query)).scalar()
        return None if found is None else int(found)


def drop_table(url: str, name: str) -> None:
    with changing(url) as connection:
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {quoted(connection, name)}")


def swap_tables(url: str, old: str, new: str, others: Mapping[str, str] = NO_TABLES) -> int:
    """Renames the new table to the old name and returns its row count; empties the old table if there is no new one.

    `others` are more old and new names, for the same transaction."""
    with changing(url) as connection:
        for each, replacement in others.items():
            swap(connection, each, replacement)
        if not swap(connection, old, new):
            return 0
        return int(connection.execute(sa.select(sa.func.count()).select_from(sa.table(old))).scalar_one())


def swap(connection: Connection, old: str, new: str) -> bool:
    """Replaces a table; False if there is neither."""
    found = sa.inspect(connection)
    if found.has_table(new):
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {quoted(connection, old)}")
        connection.exec_driver_sql(f"ALTER TABLE {quoted(connection, new)} RENAME TO {quoted(connection, old)}")
    elif found.has_table(old):
        connection.exec_driver_sql(f"DELETE FROM {quoted(connection, old)}")
    else:
        return False
    return True


def quoted(connection: Connection, name: str) -> str:
    """For `exec_driver_sql`: `text` would take a colon in a name for the start of a parameter."""
    return connection.dialect.identifier_preparer.quote(name)
