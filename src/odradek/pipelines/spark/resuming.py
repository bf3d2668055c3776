"""Resumes from a checkpoint: locks it, checks that the definition is compatible, and applies starts set by a reset."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from odradek.conventions.client_properties import UntranslatableSetting
from odradek.pipelines.definition.model import TopicOrigin
from odradek.pipelines.operating.backoff import Retry
from odradek.pipelines.operating.checkpoints import LOCK, Checkpoints
from odradek.pipelines.operating.fingerprints import Fingerprints, find_changes, fingerprints, merge
from odradek.pipelines.operating.locks import Taken, claimed, held
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sessions.session import defaults_for
from odradek.pipelines.spark.writing.topics import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from odradek.pipelines.definition.model import Pipeline, Start
    from odradek.pipelines.operating.small_files import SmallFiles
    from odradek.pipelines.planning.plan import Plan


class CheckpointTaken(PipelineError):
    """Another process uses the checkpoint."""

    retry = Retry.NEVER


class CheckpointRefused(PipelineError):
    """The definition is not compatible with the checkpoint."""

    retry = Retry.NEVER


@contextmanager
def exclusive_access(
    checkpoints: Checkpoints, name: str, on_lost: Callable[[CheckpointTaken], None] = lambda _error: None,
    check: Callable[[], object] = lambda: None, say: Callable[[str], None] = lambda _text: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Iterator[None]:  # fmt: skip
    """Holds the checkpoint's lock, so that no other process of this machine runs, resets or rebuilds the pipeline.

    A checkpoint on shared storage goes to the machine that has claimed it last; `on_lost` is called on the others.
    `check` raises what refuses the start before the claim, so that it does not stop the run of another machine.
    """

    def lost() -> None:
        on_lost(CheckpointTaken(f"another process has taken the checkpoint of {name} in {checkpoints.place}"))

    owner = f"pid {os.getpid()} on {socket.gethostname()}"
    try:
        with held(checkpoints.lock, owner):
            check()
            claim = claimed(checkpoints.files, LOCK, owner, lost, say, is_stopped)
            with nullcontext() if checkpoints.is_local else claim:
                yield
    except Taken as taken:
        raise CheckpointTaken(
            f"another process ({taken.owner}) uses the checkpoint of {name} in {checkpoints.place}; stop it first, "
            "or use another folder with --checkpoints"
        ) from None


@contextmanager
def resuming(
    plan: Plan,
    cluster: Cluster,
    say: Callable[[str], None],
    files: SmallFiles | None = None,  # of checkpoints that are not on a local disk
    on_lost: Callable[[CheckpointTaken], None] = lambda _error: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Iterator[dict[str, Start]]:
    """Yields the starts set by a reset, by flow; raises CheckpointRefused if the checkpoint is incompatible."""
    checkpoints = Checkpoints(plan.pipeline, files)

    def check() -> None:
        if not checkpoints.is_local:
            accepted(plan, checkpoints, cluster, lambda _text: None)

    with exclusive_access(checkpoints, plan.pipeline.name, on_lost, check, say, is_stopped):
        accept(plan, checkpoints, cluster, say)  # again, because the run before may have started flows
        checkpoints.drop_used_starts()
        try:
            yield checkpoints.starts()
        finally:
            checkpoints.drop_used_starts()


def accept(plan: Plan, checkpoints: Checkpoints, cluster: Cluster, say: Callable[[str], None]) -> None:
    """Checks a plan against the checkpoint's fingerprints, and stores its own."""
    checkpoints.store_definition(accepted(plan, checkpoints, cluster, say).as_object())


def accepted(plan: Plan, checkpoints: Checkpoints, cluster: Cluster, say: Callable[[str], None]) -> Fingerprints:
    """The fingerprints to store; raises CheckpointRefused if the checkpoint is incompatible."""
    pipeline, found, begun = plan.pipeline, checkpoints.recorded(), checkpoints.begun()
    before = None if found is None else Fingerprints.of_object(found)
    defaults = defaults_for(pipeline.master, pipeline.spark)
    now = fingerprints(plan, defaults, clusters_of(pipeline, cluster))
    if found is not None and before is None and begun:
        raise CheckpointRefused(other_version(pipeline, checkpoints))
    if before is not None:
        if begun and before.pipeline != pipeline.name:
            raise CheckpointRefused(other_owner(pipeline, checkpoints, before.pipeline))
        changes = find_changes(before, now, begun)
        if changes:
            raise CheckpointRefused(refusal(pipeline, checkpoints, changes))
        report_flow_changes(before.flows, now.flows, begun, checkpoints.starts(), say)
    return merge(before, now)


def clusters_of(pipeline: Pipeline, cluster: Cluster) -> dict[str, str]:
    """The id of each cluster by its bootstrap servers, which may change."""
    clusters = {} if cluster.id is None else {pipeline.bootstrap_servers: cluster.id}
    for source in pipeline.sources:
        origin = source.origin
        if isinstance(origin, TopicOrigin) and source.is_stream and origin.bootstrap_servers is not None:
            servers = origin.bootstrap_servers
            if servers not in {*clusters, pipeline.bootstrap_servers}:
                clusters[servers] = cluster_id(servers, {**pipeline.kafka, **origin.kafka})
    return clusters


def cluster_id(servers: str, settings: Mapping[str, str]) -> str:
    """The cluster's id, or its addresses if it has no id or only Spark's client can authenticate."""
    try:
        return Cluster(servers, settings).id or servers
    except (UntranslatableSetting, KafkaException):
        return servers


def report_flow_changes(
    before: Collection[str], now: Collection[str], begun: set[str], starts: Mapping[str, Start],
    say: Callable[[str], None],
) -> None:  # fmt: skip
    """Names the flows that were added or removed."""
    if not begun:
        return
    for name in set(now) - set(before):
        where = "at the position set by the reset" if name in starts else "where its sources start"
        say(f"flow {name} is new: it starts {where}")
    for name in (set(before) - set(now)) & begun:
        say(f"flow {name} was removed from the definition; its checkpoint is kept")


def other_owner(pipeline: Pipeline, checkpoints: Checkpoints, owner: str) -> str:
    return (
        f"the checkpoint in {checkpoints.place} belongs to pipeline {owner}, not to {pipeline.name}: use a separate "
        f"folder for each (`checkpoints:` or --checkpoints). If {owner} was renamed, restore its name, or clear the "
        f"checkpoint with `odradek pipeline reset {pipeline.place.file}`"
    )


def other_version(pipeline: Pipeline, checkpoints: Checkpoints) -> str:
    return (
        f"the checkpoint of {pipeline.name} in {checkpoints.place} is of another version of Odradek, and is not "
        f"continued: clear it with `odradek pipeline reset {pipeline.place.file}` (--to sets where to start), or use "
        "that version, or another folder with --checkpoints"
    )


def refusal(pipeline: Pipeline, checkpoints: Checkpoints, changes: Sequence[object]) -> str:
    return (
        f"the definition of {pipeline.name} is not compatible with its checkpoint in {checkpoints.place}: "
        f"{'; '.join(map(str, changes))}. Undo the change; or clear the checkpoint with `odradek pipeline reset "
        f"{pipeline.place.file}` (--to sets where to start); or, for a changed view, use `odradek pipeline rebuild`; "
        "or keep the checkpoint and use another pipeline name, or another folder with --checkpoints"
    )
