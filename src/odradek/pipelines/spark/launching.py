"""Runs a pipeline in the foreground: prepares topics, starts Spark, runs an engine and stops both."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from odradek.pipelines.definition.places import Problems
from odradek.pipelines.definition.vocabulary import Engine
from odradek.pipelines.operating.backoff import Retry
from odradek.pipelines.operating.checkpoints import checkpoint_folder
from odradek.pipelines.operating.events import runs
from odradek.pipelines.operating.fingerprints import REALTIME_FLOW
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.analysing.analysis import analysed
from odradek.pipelines.spark.engines.progress import ProgressWatch
from odradek.pipelines.spark.engines.realtime import RealtimeEngine, local_threads
from odradek.pipelines.spark.engines.standard import StandardEngine, run_batch, threads_for
from odradek.pipelines.spark.reading.sources import read_once
from odradek.pipelines.spark.resuming import resuming
from odradek.pipelines.spark.sessions.failures import PipelineError, SparkProcessEnded, plain_message
from odradek.pipelines.spark.sessions.hadoop_files import HadoopFiles
from odradek.pipelines.spark.sessions.jars import lakehouse_settings
from odradek.pipelines.spark.sessions.session import start_session
from odradek.pipelines.spark.sessions.user_code import ship_modules
from odradek.pipelines.spark.writing.databases import check_databases
from odradek.pipelines.spark.writing.topics import check_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline, Start
    from odradek.pipelines.operating.events import Event
    from odradek.pipelines.planning.plan import Plan
    from odradek.pipelines.spark.computing.counts import BatchReport
    from odradek.pipelines.spark.engines.running import Running
    from odradek.pipelines.spark.reading.sources import Range
    from odradek.pipelines.spark.writing.topics import Cluster

POLL_INTERVAL_S = 0.2


class DefinitionRefused(PipelineError):
    """Spark refuses steps of the definition; `odradek pipeline validate --spark` says the same."""

    retry = Retry.NEVER


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of one run: when it ends by itself, and the range that a batch reads."""

    seconds: float | None = None
    until_caught_up: bool = False
    span: Range | None = None


@dataclass(frozen=True, slots=True)
class RunCallbacks:
    """Callbacks of a run: messages for the user, batch reports, events, and a hook that is called regularly."""

    say: Callable[[str], None]
    report: Callable[[BatchReport], None]  # called on a thread of Spark
    send: Callable[[Event], None] | None = None
    each_turn: Callable[[], None] = lambda: None


def run_pipeline(
    pipeline: Pipeline, options: RunOptions, is_stopped: Callable[[], bool], callbacks: RunCallbacks
) -> None:
    """Runs the pipeline until it ends or is stopped, in a new Spark session."""
    check_databases(pipeline)
    cluster = check_topics(pipeline)
    run = Run(pipeline, cluster, plan_again(pipeline))
    if pipeline.engine is Engine.BATCH:
        with session_of(pipeline, callbacks.say) as session, cancelled_when(is_stopped, session, pipeline):
            run.analyse(session)
            callbacks.report(run.once(session, options.span))
        return
    threaded = pipeline if has_master(pipeline) else dataclasses.replace(pipeline, master=f"local[{run.threads}]")
    lost: list[PipelineError] = []

    def each_turn() -> None:
        callbacks.each_turn()
        if lost:
            raise lost[0]

    with ExitStack() as stack:
        if "://" not in checkpoint_folder(pipeline):
            starts = stack.enter_context(resuming(run.plan, cluster, callbacks.say))
            session = stack.enter_context(session_of(threaded, callbacks.say))
            run.analyse(session)
        else:  # the lock and the fingerprints are on storage that is reached through Spark
            session = stack.enter_context(session_of(threaded, callbacks.say))
            run.analyse(session)  # before the claim, which stops the run of another machine
            files = files_of(session, pipeline)
            starts = stack.enter_context(resuming(run.plan, cluster, callbacks.say, files, lost.append, is_stopped))
        run_streams(session, run, starts, options, is_stopped, dataclasses.replace(callbacks, each_turn=each_turn))


def files_of(session: SparkSession, pipeline: Pipeline) -> HadoopFiles | None:
    """The files of checkpoints that are not on a local disk."""
    folder = checkpoint_folder(pipeline)
    return HadoopFiles(session, folder) if "://" in folder else None


def run_streams(
    session: SparkSession, run: Run, starts: Mapping[str, Start], options: RunOptions, is_stopped: Callable[[], bool],
    callbacks: RunCallbacks,
) -> None:  # fmt: skip
    pipeline = run.pipeline
    callbacks.say("Spark is ready, starting the flows")
    running = run.start(session, starts, callbacks, until_caught_up=options.until_caught_up)
    try:
        callbacks.say(f"{pipeline.name} runs: {', '.join(running.queries)}")
        watch: ProgressWatch | None = None
        if callbacks.send is not None:
            callbacks.send(runs(list(running.queries), running.uncounted))
            watch = ProgressWatch(pipeline, run.cluster, running.queries, callbacks.send)

        def turn() -> None:
            if watch is not None:
                watch.turn()
            callbacks.each_turn()

        ends_at = None if options.seconds is None else time.monotonic() + options.seconds
        running.wait(lambda: is_stopped() or (ends_at is not None and time.monotonic() >= ends_at), turn)
        turn()
    finally:
        running.stop()


def has_master(pipeline: Pipeline) -> bool:
    """Whether a Spark master is configured."""
    return bool(pipeline.master or pipeline.spark.get("spark.master") or os.environ.get("SPARK_MASTER"))


@contextmanager
def session_of(pipeline: Pipeline, say: Callable[[str], None]) -> Iterator[SparkSession]:
    """A Spark session that is stopped at the end; Spark's exceptions become `PipelineError`."""
    session = begin_session(pipeline, say)
    try:
        yield session
    except PySparkException as error:
        raise PipelineError(f"{pipeline.name}: {plain_message(error)}") from error
    except (Py4JError, ConnectionError) as error:
        raise SparkProcessEnded(
            f"{pipeline.name}: Spark's process ended unexpectedly; see {log_of(pipeline)}"
        ) from error
    finally:
        with suppress(Py4JError, ConnectionError):
            session.stop()


def begin_session(pipeline: Pipeline, say: Callable[[str], None]) -> SparkSession:
    log_file = log_of(pipeline)
    Path(log_file).parent.mkdir(parents=True, exist_ok=True)
    try:
        with restored_interrupt_handler():
            settings = lakehouse_settings(pipeline, say)
            session = start_session(f"odradek {pipeline.name}", settings, pipeline.master, say, log_file)
        ship_modules(session, pipeline)
    except PySparkException as error:
        raise PipelineError(
            f"Spark did not start: {plain_message(error)} (check that Java 17 is installed; see {log_file})"
        ) from error
    return session


@contextmanager
def restored_interrupt_handler() -> Iterator[None]:
    """Restores the SIGINT handler, which PySpark replaces at its start with one that cancels all jobs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def log_of(pipeline: Pipeline) -> str:
    """The path of Spark's log: next to the checkpoints if these are on a local disk."""
    folder = checkpoint_folder(pipeline)
    return os.devnull if "://" in folder else str(Path(folder) / "spark.log")


@contextmanager
def cancelled_when(is_stopped: Callable[[], bool], session: SparkSession, pipeline: Pipeline) -> Iterator[None]:
    """Cancels Spark's jobs from another thread when the run is stopped: the thread that waits for a batch cannot."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(POLL_INTERVAL_S):
            if is_stopped():
                with suppress(Py4JError, ConnectionError):
                    session.sparkContext.cancelAllJobs()  # repeatedly, because new jobs may have started

    watcher = threading.Thread(target=watch, name="cancelling", daemon=True)
    watcher.start()
    try:
        yield
    except Exception as error:
        if not is_stopped():
            raise
        raise PipelineError(
            f"{pipeline.name} was stopped before it finished; its output so far is kept, run it again to complete it"
        ) from error
    finally:
        is_over.set()
        watcher.join()


@dataclass(frozen=True, slots=True)
class Run:
    """What the engines do for a run of a plan."""

    pipeline: Pipeline
    cluster: Cluster
    plan: Plan

    @property
    def threads(self) -> int:
        is_realtime = self.pipeline.engine is Engine.REALTIME
        return local_threads(self.pipeline, self.cluster) if is_realtime else threads_for(self.plan)

    def analyse(self, session: SparkSession) -> None:
        problems, partitions = Problems(), self.cluster.partitions_of
        analysed(session, self.plan, problems, lambda each: read_once(session, each, self.pipeline, partitions))
        if problems.errors:
            raise DefinitionRefused("\n".join(map(str, problems.errors)))

    def once(self, session: SparkSession, span: Range | None) -> BatchReport:
        return run_batch(session, self.plan, self.cluster, span)

    def start(
        self, session: SparkSession, starts: Mapping[str, Start], callbacks: RunCallbacks, *, until_caught_up: bool
    ) -> Running:
        report = callbacks.report
        if self.pipeline.engine is Engine.REALTIME:
            start = starts.get(REALTIME_FLOW)
            return RealtimeEngine(session, self.plan, self.cluster, report, start).start()
        engine = StandardEngine(session, self.plan, self.cluster, report, starts)
        return engine.start(until_caught_up=until_caught_up)
