"""The checkpoints of a pipeline: a folder of Spark for each flow, and files of Odradek next to them.

Odradek's files are the definition's fingerprints, starting points and a lock. Spark's own files, which say what batches
a flow has started and finished, and its offsets, are read on local disks only.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.model import Start
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.operating.small_files import LocalFiles, folder_of
from odradek.pipelines.operating.spark_progress import ambiguous_topics, merged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.operating.small_files import SmallFiles
    from odradek.pipelines.operating.status import Offsets

DEFINITION = "definition.json"
LOCK = "checkpoint.lock"
START = "start.json"


def checkpoint_folder(pipeline: Pipeline) -> str:
    """The folder in the definition, or one in the user's state folder."""
    if pipeline.checkpoints is None:
        return str(folder_of(pipeline.name) / "checkpoints")
    return pipeline.below(pipeline.checkpoints)


def checkpoint_of(pipeline: Pipeline, flow: str) -> str:
    return f"{checkpoint_folder(pipeline).rstrip('/')}/{flow}"


def checkpoint_uri(pipeline: Pipeline, flow: str) -> str:
    """The checkpoint of a flow for Spark, for which a path without a scheme is on Hadoop's default file system.

    Characters are not escaped: Hadoop's paths are no URIs."""
    folder = checkpoint_of(pipeline, flow)
    return folder if "://" in folder else f"file://{os.path.abspath(folder)}"


@dataclass(frozen=True, slots=True)
class FlowCheckpoint:
    """The progress of a flow. A batch that was started and not finished will be replayed."""

    flow: str
    query: str | None = None  # Spark's query id, which a new checkpoint changes
    begun: int | None = None
    finished: int | None = None
    time_ms: int | None = None  # of the last batch that was started
    positions: Offsets = field(default_factory=dict)  # the offsets after that batch
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """A file of Spark's offset log: a batch and the offsets at its end."""

    time_ms: int | None
    positions: Offsets
    ambiguous: tuple[str, ...] = ()  # topics of which two sources have different offsets


class Checkpoints:
    """The files that a pipeline keeps between its runs; `files` are those of a folder that is not local."""

    def __init__(self, pipeline: Pipeline, files: SmallFiles | None = None) -> None:
        self.place = checkpoint_folder(pipeline)
        self.is_local = "://" not in self.place
        self.folder = Path(self.place) if self.is_local else folder_of(pipeline.name)
        self.files: SmallFiles = LocalFiles(self.folder) if files is None else files

    @property
    def lock(self) -> Path:
        return self.folder / LOCK

    def flow_folder(self, flow: str) -> Path:
        return self.folder / flow

    def flows(self) -> list[FlowCheckpoint]:
        """The checkpoints of the flows that have started."""
        if not self.is_local or not self.folder.is_dir():
            return []
        folders = [each for each in self.folder.iterdir() if not each.name.startswith(".")]
        return [read_flow(each) for each in sorted(folders) if batch_numbers(each / "offsets")]

    def begun(self) -> set[str]:
        """Names of the flows that have started; if the folder is not local, of those in the stored fingerprints."""
        if self.is_local:
            return {each.flow for each in self.flows()}
        known = self.recorded()
        return set() if known is None else {flow for flow in known["flows"] if self.files.has(f"{flow}/offsets")}

    def entry_of(self, flow: str, batch: int) -> OffsetEntry | None:
        """The end offsets of a batch; None if Spark has deleted them."""
        return read_entry(self.flow_folder(flow) / "offsets" / str(batch))

    def first_positions(self, flow: str) -> Offsets:
        """The offsets at which a flow began; empty if no batch has begun."""
        texts = [each.read_text("utf-8", "replace") for each in (self.flow_folder(flow) / "sources").glob("*/0")]
        return merged(text[text.find("{") :] for text in texts)  # the version is before the offsets

    def recorded(self) -> dict[str, Any] | None:
        """The stored fingerprints, of any version."""
        found = self.files.read(DEFINITION)
        return None if found is None else json.loads(found)

    def store_definition(self, fingerprints: dict[str, Any]) -> None:
        self.files.replace(DEFINITION, json.dumps(fingerprints, indent=1))

    def starts(self) -> dict[str, Start]:
        """The starting points set by a reset for flows without a checkpoint."""
        begun = self.begun()
        return {flow: start for flow, start in self._stored_starts().items() if flow not in begun}

    def note_start(self, flows: Iterable[str], start: Start | None) -> None:
        """Sets where these flows start next; None means their sources' own start."""
        noted = {flow: each for flow, each in self._stored_starts().items() if flow not in set(flows)}
        self._write_starts(noted if start is None else noted | dict.fromkeys(flows, start))

    def drop_used_starts(self) -> None:
        """Drops the starting points of flows that have started, so that they are used once only."""
        kept = self.starts()
        if kept != self._stored_starts():
            self._write_starts(kept)

    def _stored_starts(self) -> dict[str, Start]:
        found = json.loads(self.files.read(START) or '{"flows": {}}')
        return {flow: start_of_object(each) for flow, each in found["flows"].items()}

    def _write_starts(self, starts: dict[str, Start]) -> None:
        if not starts:
            self.files.remove(START)
            return
        flows = {
            flow: {"at": start.at, "time_ms": start.time_ms, "offsets": start.offsets} for flow, start in starts.items()
        }
        self.files.replace(START, json.dumps({"flows": flows}))

    def forget(self, flow: str) -> None:
        """Removes the checkpoint of a flow: renames it first, so that a failed removal leaves no partial checkpoint."""
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
    begun = max(batch_numbers(folder / "offsets"))
    entry = read_entry(folder / "offsets" / str(begun)) or OffsetEntry(None, {})
    metadata = json.loads(LocalFiles(folder).read("metadata") or "{}")
    finished = max(batch_numbers(folder / "commits"), default=None)
    size_bytes = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    return FlowCheckpoint(folder.name, metadata.get("id"), begun, finished, entry.time_ms, entry.positions, size_bytes)


def read_entry(path: Path) -> OffsetEntry | None:
    """Parses a file of Spark's offset log: a version, a line for the batch, a line for each source."""
    try:
        _version, about, *sources = path.read_text(encoding="utf-8").splitlines()
        return OffsetEntry(json.loads(about).get("batchTimestampMs"), merged(sources), tuple(ambiguous_topics(sources)))
    except (OSError, ValueError):
        return None


def batch_numbers(folder: Path) -> list[int]:
    """The batch numbers in a log of Spark."""
    return [int(each.name) for each in folder.iterdir() if each.name.isdecimal()] if folder.is_dir() else []
