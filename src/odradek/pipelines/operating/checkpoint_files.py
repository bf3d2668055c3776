"""Checkpoints on disk, as Spark writes them: which batches a flow has begun and finished, and where its topics stand.

Beside the flows' folders are notes of our own: what the definition was, where to begin, and who is at work there.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.pipelines.definition.model import Start
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.operating.fingerprints import Fingerprints
from odradek.pipelines.operating.spark_progress import merged
from odradek.pipelines.operating.state_folders import folder_of
from odradek.pipelines.operating.status_files import write_whole
from odradek.pipelines.spark.checkpoints import checkpoint_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.operating.status import Offsets

DEFINITION = "definition.json"
LOCK = "checkpoint.lock"
START = "start.json"


@dataclass(frozen=True, slots=True)
class FlowCheckpoint:
    """How far a flow is. A batch that was begun and not finished comes again."""

    flow: str
    query: str | None = None  # Spark's id, new with every new checkpoint
    begun: int | None = None
    finished: int | None = None
    time_ms: int | None = None  # of the last batch that was begun
    positions: Offsets = field(default_factory=dict)  # after it
    size_bytes: int = 0


class Checkpoints:
    """All that is kept of a pipeline between its runs. Only folders of this machine can be looked into."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.place = checkpoint_folder(pipeline)
        self.is_local = "://" not in self.place
        self.folder = Path(self.place) if self.is_local else folder_of(pipeline.name)

    @property
    def lock(self) -> Path:
        return self.folder / LOCK

    def flow_folder(self, flow: str) -> Path:
        return self.folder / flow

    def flows(self) -> list[FlowCheckpoint]:
        """Of the flows that have begun."""
        if not self.is_local or not self.folder.is_dir():
            return []
        found = [
            each.name for each in self.folder.iterdir() if not each.name.startswith(".") and numbers(each / "offsets")
        ]
        return [read_flow(self.folder / name) for name in sorted(found)]

    def begun(self) -> set[str]:
        """Where nobody can look, every flow that was ever started counts."""
        if self.is_local:
            return {each.flow for each in self.flows()}
        known = self.definition()
        return set() if known is None else set(known.flows)

    def positions_after(self, flow: str, batch: int) -> Offsets | None:
        """Where a batch ended; None where Spark has forgotten it."""
        entry = read_entry(self.flow_folder(flow) / "offsets" / str(batch))
        return None if entry is None else entry.positions

    def definition(self) -> Fingerprints | None:
        found = read_json(self.folder / DEFINITION)
        return None if found is None else Fingerprints.of_object(found)

    def note_definition(self, fingerprints: Fingerprints) -> None:
        write_whole(self.folder / DEFINITION, json.dumps(fingerprints.as_object(), indent=1))

    def starts(self) -> dict[str, Start]:
        """Where flows begin that have no checkpoint, if not at their sources' own start."""
        begun = self.begun()
        return {flow: start for flow, start in self._noted_starts().items() if flow not in begun}

    def note_start(self, flows: Iterable[str], start: Start | None) -> None:
        """For the next time that these flows begin; None is their sources' own start."""
        noted = {flow: each for flow, each in self._noted_starts().items() if flow not in set(flows)}
        if start is not None:
            noted |= dict.fromkeys(flows, start)
        self._write_starts(noted)

    def drop_used_starts(self) -> None:
        """Of flows that have begun: should their checkpoints go one day, they begin at their sources' start."""
        kept = self.starts()
        if kept != self._noted_starts():
            self._write_starts(kept)

    def _noted_starts(self) -> dict[str, Start]:
        found = read_json(self.folder / START)
        return {} if found is None else {flow: start_of_object(each) for flow, each in found["flows"].items()}

    def _write_starts(self, starts: dict[str, Start]) -> None:
        if not starts:
            (self.folder / START).unlink(missing_ok=True)
            return
        flows = {
            flow: {"at": each.at, "time_ms": each.time_ms, "offsets": each.offsets} for flow, each in starts.items()
        }
        write_whole(self.folder / START, json.dumps({"flows": flows}))

    def forget(self, flow: str) -> None:
        """As a whole or not at all: what is left of a folder that cannot be removed is no checkpoint. OSError then."""
        folder = self.flow_folder(flow)
        if not folder.exists():
            return
        forgotten = folder.with_name(f".forgotten-{flow}")
        if forgotten.exists():
            shutil.rmtree(forgotten)
        folder.rename(forgotten)
        shutil.rmtree(forgotten)


def start_of_object(found: dict[str, Any]) -> Start:
    offsets = {topic: {int(key): at for key, at in each.items()} for topic, each in found["offsets"].items()}
    return Start(StartAt(found["at"]), found["time_ms"], offsets)


def read_flow(folder: Path) -> FlowCheckpoint:
    begun = max(numbers(folder / "offsets"))
    entry = read_entry(folder / "offsets" / str(begun))
    metadata = read_json(folder / "metadata") or {}
    return FlowCheckpoint(
        folder.name,
        metadata.get("id"),
        begun,
        max(numbers(folder / "commits"), default=None),
        None if entry is None else entry.time_ms,
        {} if entry is None else entry.positions,
        sum(each.stat().st_size for each in folder.rglob("*") if each.is_file()),
    )


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    time_ms: int | None
    positions: Offsets


def read_entry(path: Path) -> OffsetEntry | None:
    """A file of Spark's log of offsets: a version, a line about the batch, a line for each source."""
    try:
        _version, about, *sources = path.read_text(encoding="utf-8").splitlines()
        return OffsetEntry(json.loads(about).get("batchTimestampMs"), merged(sources))
    except (OSError, ValueError):
        return None


def numbers(folder: Path) -> list[int]:
    """The batches of a log of Spark's."""
    return [int(each.name) for each in folder.iterdir() if each.name.isdecimal()] if folder.is_dir() else []


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
