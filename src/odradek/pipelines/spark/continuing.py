"""Going on from a checkpoint: alone at it, with a definition that it can carry, from where a reset has said."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.model import TopicOrigin
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.operating.checkpoint_files import Checkpoints
from odradek.pipelines.operating.fingerprints import Reader, find_changes, merge
from odradek.pipelines.operating.locks import Taken, held
from odradek.pipelines.spark.failures import PipelineError
from odradek.pipelines.spark.session import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.pipelines.definition.model import Pipeline, Source, Start
    from odradek.pipelines.operating.fingerprints import Change, Fingerprints
    from odradek.pipelines.spark.topics import Cluster


class CheckpointTaken(PipelineError):
    """Another process is at work on it."""


class CheckpointRefused(PipelineError):
    """The definition has changed in a way that it cannot carry."""


@contextmanager
def alone_at(checkpoints: Checkpoints, name: str) -> Iterator[None]:
    """No other process runs, resets or rebuilds the pipeline meanwhile."""
    try:
        with held(checkpoints.lock, f"pid {os.getpid()}"):
            yield
    except Taken as taken:
        raise CheckpointTaken(
            f"{name} is at work already ({taken.owner}) on the checkpoint in {checkpoints.place}; stop that first, "
            "or use another folder with --checkpoints"
        ) from None


@contextmanager
def continuing(pipeline: Pipeline, cluster: Cluster, say: Callable[[str], None]) -> Iterator[Pipeline]:
    """The pipeline as it goes on; CheckpointRefused where it cannot."""
    checkpoints = Checkpoints(pipeline)
    with alone_at(checkpoints, pipeline.name):
        accept(pipeline, checkpoints, cluster, say)
        start = checkpoints.start()
        yield pipeline if start is None else started_at(pipeline, start)


def accept(pipeline: Pipeline, checkpoints: Checkpoints, cluster: Cluster, say: Callable[[str], None]) -> None:
    """Compares the definition with what the checkpoint was made by, and notes it for the next time."""
    now = fingerprints_of(pipeline, cluster)
    before = checkpoints.definition()
    begun = checkpoints.begun()
    if before is not None:
        changes = find_changes(before, now, begun)
        if changes:
            raise CheckpointRefused(refusal(pipeline, checkpoints, changes))
        tell_of_flows(before, now, begun, say)
    checkpoints.note_definition(merge(before, now))


def fingerprints_of(pipeline: Pipeline, cluster: Cluster) -> Fingerprints:
    clusters = {} if cluster.id is None else {pipeline.bootstrap_servers: cluster.id}
    return Reader(pipeline, build_graph(pipeline), DEFAULTS, clusters).read()


def tell_of_flows(before: Fingerprints, now: Fingerprints, begun: set[str], say: Callable[[str], None]) -> None:
    if not begun:
        return
    for name in now.flows.keys() - before.flows.keys():
        say(f"flow {name} is new: it begins where its sources start")
    for name in (before.flows.keys() - now.flows.keys()) & begun:
        say(f"flow {name} is not in the definition any more: its checkpoint is left as it is")


def refusal(pipeline: Pipeline, checkpoints: Checkpoints, changes: list[Change]) -> str:
    return (
        f"{pipeline.name} has changed in a way that its checkpoint in {checkpoints.place} cannot carry: "
        f"{'; '.join(map(str, changes))}. Undo that; or forget how far it is with `odradek pipeline reset "
        f"{pipeline.place.file}` (--to begins at a time); or make a view that has changed anew with `odradek pipeline "
        "rebuild`; or leave the checkpoint alone: another name, or another folder with --checkpoints"
    )


def started_at(pipeline: Pipeline, start: Start) -> Pipeline:
    """With another start for every topic; flows that have a checkpoint go on from that all the same."""
    return replace(pipeline, sources=tuple(source_at(each, start) for each in pipeline.sources))


def source_at(source: Source, start: Start) -> Source:
    origin = source.origin
    if not isinstance(origin, TopicOrigin) or not source.is_stream:
        return source
    is_named = start.at is not StartAt.OFFSETS or any(topic in start.offsets for topic in origin.topics)
    return replace(source, origin=replace(origin, start=start)) if is_named else source
