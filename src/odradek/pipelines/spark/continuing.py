"""Going on from a checkpoint: alone at it, with a definition that it can carry, from where a reset has said."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from odradek.pipelines.definition.graph import build_graph
from odradek.pipelines.definition.model import TopicOrigin
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.operating.checkpoint_files import Checkpoints
from odradek.pipelines.operating.fingerprints import Reader, find_changes, merge
from odradek.pipelines.operating.locks import Taken, held
from odradek.pipelines.spark.client_settings import SettingRefused
from odradek.pipelines.spark.failures import PipelineError
from odradek.pipelines.spark.session import DEFAULTS
from odradek.pipelines.spark.topics import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from odradek.pipelines.definition.model import Pipeline, Source, Start
    from odradek.pipelines.operating.fingerprints import Change, Fingerprints


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
def continuing(pipeline: Pipeline, cluster: Cluster, say: Callable[[str], None]) -> Iterator[dict[str, Start]]:
    """Where flows begin for which a reset has said so; CheckpointRefused where the pipeline cannot go on."""
    checkpoints = Checkpoints(pipeline)
    with alone_at(checkpoints, pipeline.name):
        accept(pipeline, checkpoints, cluster, say)
        checkpoints.drop_used_starts()
        try:
            yield checkpoints.starts()
        finally:
            checkpoints.drop_used_starts()


def accept(pipeline: Pipeline, checkpoints: Checkpoints, cluster: Cluster, say: Callable[[str], None]) -> None:
    """Compares the definition with what the checkpoint was made by, and notes it for the next time."""
    now = fingerprints_of(pipeline, cluster)
    before = checkpoints.definition()
    begun = checkpoints.begun()
    if before is not None:
        if begun and before.pipeline not in {None, pipeline.name}:
            raise CheckpointRefused(other_owner(pipeline, checkpoints, before.pipeline or ""))
        changes = find_changes(before, now, begun)
        if changes:
            raise CheckpointRefused(refusal(pipeline, checkpoints, changes))
        tell_of_flows(before, now, begun, checkpoints.starts(), say)
    checkpoints.note_definition(merge(before, now))


def fingerprints_of(pipeline: Pipeline, cluster: Cluster) -> Fingerprints:
    """Clusters are known by their ids: they may be reached by other addresses one day."""
    clusters = {} if cluster.id is None else {pipeline.bootstrap_servers: cluster.id}
    for source in pipeline.sources:
        origin = source.origin
        if isinstance(origin, TopicOrigin) and source.is_stream and origin.bootstrap_servers is not None:
            servers = origin.bootstrap_servers
            if servers not in {*clusters, pipeline.bootstrap_servers}:
                clusters[servers] = cluster_id(servers, {**pipeline.kafka, **origin.kafka})
    return Reader(pipeline, build_graph(pipeline), DEFAULTS, clusters).read()


def cluster_id(servers: str, settings: Mapping[str, str]) -> str:
    """The addresses themselves where the cluster has no id, or only Spark's client knows how to log in."""
    try:
        return Cluster(servers, settings).id or servers
    except (SettingRefused, KafkaException):
        return servers


def tell_of_flows(
    before: Fingerprints, now: Fingerprints, begun: set[str], starts: Mapping[str, Start], say: Callable[[str], None]
) -> None:
    if not begun:
        return
    for name in now.flows.keys() - before.flows.keys():
        where = "where a reset has said" if name in starts else "where its sources start"
        say(f"flow {name} is new: it begins {where}")
    for name in (before.flows.keys() - now.flows.keys()) & begun:
        say(f"flow {name} is not in the definition any more: its checkpoint is left as it is")


def other_owner(pipeline: Pipeline, checkpoints: Checkpoints, owner: str) -> str:
    return (
        f"the checkpoint in {checkpoints.place} is that of pipeline {owner}, not of {pipeline.name}: give each a "
        f"folder of its own (`checkpoints:` or --checkpoints). If {owner} has a new name, give it the old one again, "
        f"or forget how far it is with `odradek pipeline reset {pipeline.place.file}`"
    )


def refusal(pipeline: Pipeline, checkpoints: Checkpoints, changes: list[Change]) -> str:
    return (
        f"{pipeline.name} has changed in a way that its checkpoint in {checkpoints.place} cannot carry: "
        f"{'; '.join(map(str, changes))}. Undo that; or forget how far it is with `odradek pipeline reset "
        f"{pipeline.place.file}` (--to begins at a time); or make a view that has changed anew with `odradek pipeline "
        "rebuild`; or leave the checkpoint alone: another name, or another folder with --checkpoints"
    )


def source_at(source: Source, start: Start | None) -> Source:
    """With another start; None is its own."""
    origin = source.origin
    if start is None or not isinstance(origin, TopicOrigin) or not source.is_stream:
        return source
    is_named = start.at is not StartAt.OFFSETS or any(topic in start.offsets for topic in origin.topics)
    return replace(source, origin=replace(origin, start=start)) if is_named else source
