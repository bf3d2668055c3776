"""`odradek pipeline checkpoints` and `reset`: the positions of a pipeline in its topics, shown and set."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import format_option, option, repeatable, yes_option
from odradek.cli.framework.output import note, print_columns, print_json, print_result, say
from odradek.cli.framework.parameter_types import TEXT, quoted
from odradek.cli.pipeline.options import checkpoints_option, chosen_pipeline, definition_options, name_option
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT32_MAX, INT64_MAX, age_text, iso_text, parse_time_ms, size_text
from odradek.pipelines.definition.model import Pipeline, Start, TopicOrigin
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.spark.reading.sources import EARLIEST_OFFSET, LATEST_OFFSET, Range

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from odradek.pipelines.operating.checkpoints import Checkpoints, FlowCheckpoint
    from odradek.pipelines.planning.plan import Flow

DAY = re.compile(r"\d{4}-\d{2}-\d{2}[T ]")
HINT = "write earliest, latest, a time such as 2026-01-31T12:00 or -1h, or TOPIC:PARTITION:OFFSET"


@command(
    ("offsets of all flows", "odradek pipeline checkpoints pipeline.yml"),
    ("the offsets of one flow", "odradek pipeline checkpoints p.yml --format json | jq 'select(.flow==\"rigs\")'"),
)
@click.argument("file", metavar="FILE", type=click.Path())
@definition_options
@name_option
@checkpoints_option
@format_option
def checkpoints(file: str, as_json: bool) -> None:
    """Show the checkpoints of a pipeline: the offsets that its flows have reached.

    A batch that was begun and not finished is repeated. Offsets are the next ones to read after the batch.
    """
    found = chosen_pipeline(file)
    kept = local_checkpoints(found)
    flows = kept.flows()
    if as_json:
        for flow in flows:
            print_json({"pipeline": found.name, "folder": str(kept.flow_folder(flow.flow)), **dataclasses.asdict(flow)})
        return
    say(f"{found.name}: {kept.place}")
    if flows:
        titles = ["FLOW", "BATCH", "FINISHED", "BEGUN", "TOPIC", "PARTITION", "OFFSET", "SIZE"]
        print_columns(titles, [row for flow in flows for row in flow_rows(flow)])
    else:
        say("no checkpoints" if kept.starts() else "no checkpoints: it begins at the start of its sources")
    for reset_flow, start in sorted(kept.starts().items()):
        say(f"flow {reset_flow} begins at {position_text(start)}")


def flow_rows(flow: FlowCheckpoint) -> list[tuple[object, ...]]:
    """A row for each partition; the first row has what they share."""
    age = "-" if flow.time_ms is None else age_text(int(time.time() * 1000) - flow.time_ms) + " ago"
    places: list[tuple[object, ...]] = [
        (topic, int(partition), offset)
        for topic, partitions in flow.positions.items()
        for partition, offset in sorted(partitions.items(), key=lambda item: int(item[0]))
    ] or [("-", None, None)]
    finished = "yes" if flow.begun == flow.finished else "no"
    first = (flow.flow, flow.begun, finished, age, *places[0], size_text(flow.size_bytes))
    return [first, *(("", None, "", "", *place, "") for place in places[1:])]


def local_checkpoints(found: Pipeline) -> Checkpoints:
    from odradek.pipelines.operating.checkpoints import Checkpoints

    kept = Checkpoints(found)
    if not kept.is_local:
        raise Failure(
            f"the checkpoints of {found.name} are in {kept.place}; only local folders can be read; "
            "to reset a flow, remove its folder there"
        )
    return kept


@command(
    ("begin at the start of the sources", "odradek pipeline reset pipeline.yml"),
    ("begin at a time", "odradek pipeline reset pipeline.yml --to 2026-01-31T12:00"),
    ("only new records", "odradek pipeline reset pipeline.yml --to latest --yes"),
    ("begin at offsets", "odradek pipeline reset pipeline.yml --to rigs:0:1200 --to rigs:1:900"),
    ("one flow", "odradek pipeline reset pipeline.yml --flow files-archive"),
)
@click.argument("file", metavar="FILE", type=click.Path())
@option(
    "--to places", "POSITION", TEXT,
    "Begin at earliest, latest, a time, or TOPIC:PARTITION:OFFSET (repeatable). Default: the sources' start.",
    multiple=True,
)  # fmt: skip
@repeatable("--flow chosen", "NAME", TEXT, "Only this flow.")
@definition_options
@name_option
@checkpoints_option
@yes_option
@format_option
def reset(file: str, places: tuple[str, ...], chosen: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Clear a pipeline's checkpoint so that it starts over, at the start of its sources or at --to.

    The pipeline must be stopped. Its state is discarded, too.

    Shows the effects on topics, tables, views and files first, and asks for confirmation.
    """
    found = chosen_pipeline(file)
    start = parse_position(places, found) if places else None
    done = forget(found, start, chosen, is_confirmed=yes)
    flows = f", flow {', '.join(chosen)}," if chosen else ""
    place = None if start is None else position_text(start)
    text = f"{found.name}{flows} begins at {place or 'the start of its sources'} with its next run"
    print_result({"pipeline": found.name, "forgotten": done, "start": place}, text, as_json=as_json)


def forget_and_begin(found: Pipeline, places: Sequence[str], is_confirmed: bool) -> None:
    """For `run --from` and `start --from`."""
    forget(found, parse_position(places, found), (), is_confirmed=is_confirmed)


def check_reset(found: Pipeline, places: Sequence[str]) -> None:
    """Failure for what `forget_and_begin` would refuse, before anything is discarded."""
    parse_position(places, found)
    kept = local_checkpoints(found)
    begun = kept.begun()
    for name, flow in flows_of(found).items():
        if name in begun:
            files_folder(found, flow)
    with reset_lock(found, kept):
        pass


@contextlib.contextmanager
def reset_lock(found: Pipeline, kept: Checkpoints) -> Iterator[None]:
    """Failure while the pipeline runs."""
    from odradek.pipelines.operating.locks import Taken, held

    try:
        with held(kept.lock, "a reset"):
            yield
    except Taken as taken:
        raise Failure(f"{found.name} is running ({taken.owner}); stop it first") from None


def forget(found: Pipeline, start: Start | None, chosen: Sequence[str], *, is_confirmed: bool) -> list[str]:
    """Discard checkpoints, and return the names of their flows."""
    kept = local_checkpoints(found)
    with reset_lock(found, kept):
        return forget_flows(found, kept, start, chosen, is_confirmed=is_confirmed)


def forget_flows(
    found: Pipeline, kept: Checkpoints, start: Start | None, chosen: Sequence[str], *, is_confirmed: bool
) -> list[str]:
    flows = flows_of(found)
    begun = {each.flow for each in kept.flows()}
    unknown = [name for name in chosen if name not in begun and name not in flows]
    if unknown:
        raise Failure(f"{found.name} has no flow {unknown[0]}; it has {', '.join(sorted(begun | flows.keys()))}")
    names = sorted(begun & set(chosen) if chosen else begun)
    aside = [folder for name in names if name in flows and (folder := files_folder(found, flows[name])) is not None]
    if names:
        from odradek.pipelines.operating.effects import reset_effects

        note(f"{found.name} discards its checkpoints: {', '.join(names)}")
        for line in reset_effects([flows[name] for name in names if name in flows], start):
            note(f"  {line}")
        if not is_confirmed and not agrees():
            note("nothing was changed")
            raise click.exceptions.Exit(1)
    # In this order an interrupted reset loses nothing and can be repeated.
    try:
        kept.note_start(chosen or sorted(begun | flows.keys()), start)
        for folder in aside:
            set_aside(folder)
        for name in names:
            kept.forget(name)
    except OSError as error:
        raise Failure(f"{error.filename or kept.place}: {error.strerror}; fix that, then repeat the reset") from error
    return names


def agrees() -> bool:
    """Whether the user agrees; an end of the input and Ctrl-C are a no."""
    try:
        return click.confirm("Continue?", err=True)
    except click.Abort:
        return False


def flows_of(found: Pipeline) -> Mapping[str, Flow]:
    from odradek.pipelines.definition.vocabulary import Engine
    from odradek.pipelines.operating.fingerprints import REALTIME_FLOW
    from odradek.pipelines.planning.rules import plan_again

    flows = plan_again(found).flows
    is_realtime = found.engine is Engine.REALTIME
    return {REALTIME_FLOW: flows[0]} if is_realtime else {each.name: each for each in flows}


def files_folder(found: Pipeline, flow: Flow) -> Path | None:
    """The folder to which the flow writes files; Failure if it is not local."""
    target: Any = None if flow.files is None else flow.files.target
    if target is None:
        return None
    place = found.below(target.path)
    if "://" in place:
        raise Failure(f"{place} is not local and cannot be renamed; remove its _spark_metadata, or use another path")
    return Path(place)


def set_aside(folder: Path) -> None:
    """Rename the folder: Spark's file sink keeps its own batch numbers, and would skip those of a new checkpoint."""
    if folder.exists():
        aside = folder.with_name(f"{folder.name}.before-{time.strftime('%Y%m%dT%H%M%S')}")
        folder.rename(aside)
        note(f"  {folder} is now {aside.name}")


def parse_position(texts: Sequence[str], pipeline: Pipeline) -> Start:
    """One position for all topics, or offsets of partitions; Failure for anything else."""
    if len(texts) == 1 and texts[0] in {StartAt.EARLIEST, StartAt.LATEST}:
        return Start(StartAt(texts[0]))
    offsets = [parse_offset(text) for text in texts]
    if None not in offsets:
        by_topic: dict[str, dict[int, int]] = {}
        for topic, partition, offset in filter(None, offsets):
            check_topic(topic, pipeline)
            by_topic.setdefault(topic, {})[partition] = offset
        return Start(StartAt.OFFSETS, offsets=by_topic)
    if len(texts) > 1:
        raise Failure(f"{' '.join(texts)}: several positions must all be TOPIC:PARTITION:OFFSET")
    try:
        return Start(StartAt.TIME, max(0, parse_time_ms(texts[0], int(time.time() * 1000))))
    except (ValueError, OverflowError):
        raise Failure(f"{quoted(texts[0])} is no position in a topic; {HINT}") from None


def parse_range(from_texts: Sequence[str], to_texts: Sequence[str], pipeline: Pipeline) -> Range:
    """The range of a backfill. With offsets, only the named partitions are read."""
    start = parse_position(from_texts, pipeline)
    end = parse_position(to_texts, pipeline) if to_texts else Start(StartAt.LATEST)
    if start.at is StartAt.LATEST or end.at is StartAt.EARLIEST:
        raise Failure("the range is empty: it begins at the latest record, or ends at the earliest")
    if StartAt.OFFSETS not in {start.at, end.at}:
        return Range(start, end)
    if StartAt.TIME in {start.at, end.at}:
        raise Failure("a range takes times or offsets, not both")
    named = [(topic, each) for position in (start, end) for topic, found in position.offsets.items() for each in found]
    return Range(with_all(start, named, EARLIEST_OFFSET), with_all(end, named, LATEST_OFFSET), only_named=True)


def with_all(position: Start, named: Sequence[tuple[str, int]], other: int) -> Start:
    offsets: dict[str, dict[int, int]] = {}
    for topic, partition in named:
        offsets.setdefault(topic, {})[partition] = position.offsets.get(topic, {}).get(partition, other)
    return Start(StartAt.OFFSETS, offsets=offsets)


def parse_offset(text: str) -> tuple[str, int, int] | None:
    """Parse `pump:0:1200`; None for anything else, such as a time of day."""
    topic, *numbers = text.rsplit(":", 2)
    if not topic or len(numbers) != 2 or DAY.match(text) or not all(each.isdecimal() for each in numbers):
        return None
    partition, offset = int(numbers[0]), int(numbers[1])
    return (topic, partition, offset) if partition <= INT32_MAX and offset <= INT64_MAX else None


def ranged_names(pipeline: Pipeline) -> frozenset[str]:
    """The sources that a range of the log limits: the streams. A static topic is read whole, as in every batch of a
    stream, unless no source is a stream."""
    streams = frozenset(each.name for each in pipeline.sources if each.is_stream)
    return streams or frozenset(each.name for each in pipeline.sources)


def check_topic(topic: str, pipeline: Pipeline) -> None:
    ranged = ranged_names(pipeline)
    found = {each.name: each.origin for each in pipeline.sources if isinstance(each.origin, TopicOrigin)}
    origins = [origin for name, origin in found.items() if name in ranged]
    read = [name for origin in origins for name in origin.topics]
    if topic not in read and any(topic in origin.topics for origin in found.values()):
        raise Failure(f"topic {topic} is read as a whole, because its source has stream: false; name offsets of others")
    if topic not in read:
        has_pattern = any(each.pattern is not None for each in origins)
        patterns = "; offsets need topics that are named, not patterns" if has_pattern else ""
        raise Failure(f"{pipeline.name} does not read topic {topic}; it reads {', '.join(read) or 'none'}{patterns}")


def position_text(start: Start) -> str:
    if start.at is StartAt.TIME:
        return iso_text(start.time_ms or 0)
    if start.at is StartAt.OFFSETS:
        offsets = [f"{topic}:{each}:{at}" for topic, found in start.offsets.items() for each, at in found.items()]
        return ", ".join(offsets)
    return str(start.at)
