"""Reads Spark's checkpoints: the batches that a flow has started and finished, and its offsets.

Next to the flows' folders are files of Odradek: the definition's fingerprints, starting points, and a lock. Spark's own
files are read on local disks only.
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
from odradek.pipelines.operating.small_files import LocalFiles
from odradek.pipelines.operating.spark_progress import ambiguous_topics, merged
from odradek.pipelines.operating.state_folders import folder_of
from odradek.pipelines.spark.checkpoints import checkpoint_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.operating.small_files import SmallFiles
    from odradek.pipelines.operating.status import Offsets

DEFINITION = "definition.json"
LOCK = "checkpoint.lock"
START = "start.json"


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


class Checkpoints:
    """The files that a pipeline keeps between its runs; `files` are those of a folder that is not local."""

    def __init__(self, pipeline: Pipeline, files: SmallFiles | None = None) -> None:
        self.place = checkpoint_folder(pipeline)
        self.is_local = "://" not in self.place
        self.folder = Path(self.place) if self.is_local else folder_of(pipeline.name)
        self.files: SmallFiles = LocalFiles(self.folder) if files is None else files
        self._home = LocalFiles(folder_of(pipeline.name))

    def move_from_home(self) -> None:
        """Moves the files of shared checkpoints from the home directory, where earlier versions kept them."""
        for name in () if self.is_local else (DEFINITION, START):
            text = self._home.read(name)
            if text is not None:
                self.files.create(name, text)
                self._home.remove(name)

    @property
    def lock(self) -> Path:
        return self.folder / LOCK

    def flow_folder(self, flow: str) -> Path:
        return self.folder / flow

    def flows(self) -> list[FlowCheckpoint]:
        """The checkpoints of the flows that have started."""
        if not self.is_local or not self.folder.is_dir():
            return []
        found = [
            each.name for each in self.folder.iterdir() if not each.name.startswith(".") and numbers(each / "offsets")
        ]
        return [read_flow(self.folder / name) for name in sorted(found)]

    def begun(self) -> set[str]:
        """Names of the flows that have started; if the folder is not local, of those in the stored fingerprints."""
        if self.is_local:
            return {each.flow for each in self.flows()}
        known = self.definition()
        return set() if known is None else {flow for flow in known.flows if self.files.has(f"{flow}/offsets")}

    def entry_of(self, flow: str, batch: int) -> OffsetEntry | None:
        """The end offsets of a batch; None if Spark has deleted them."""
        return read_entry(self.flow_folder(flow) / "offsets" / str(batch))

    def first_positions(self, flow: str) -> Offsets:
        """The offsets at which a flow began; empty if its connector does not store them, as the Python one."""
        folder = self.flow_folder(flow) / "sources"
        texts = [read_text(each / "0") for each in folder.iterdir()] if folder.is_dir() else []
        return merged(text[text.find("{") :] for text in texts)  # the version is before the offsets

    def definition(self) -> Fingerprints | None:
        found = self.files.read(DEFINITION)
        return None if found is None else Fingerprints.of_object(json.loads(found))

    def store_definition(self, fingerprints: Fingerprints) -> None:
        self.files.replace(DEFINITION, json.dumps(fingerprints.as_object(), indent=1))

    def starts(self) -> dict[str, Start]:
        """The starting points set by a reset for flows without a checkpoint."""
        begun = self.begun()
        return {flow: start for flow, start in self._stored_starts().items() if flow not in begun}

    def note_start(self, flows: Iterable[str], start: Start | None) -> None:
        """Sets where these flows start next; None means their sources' own start."""
        noted = {flow: each for flow, each in self._stored_starts().items() if flow not in set(flows)}
        if start is not None:
            noted |= dict.fromkeys(flows, start)
        self._write_starts(noted)

    def drop_used_starts(self) -> None:
        """Drops the starting points of flows that have started, so that they are used once only."""
        kept = self.starts()
        if kept != self._stored_starts():
            self._write_starts(kept)

    def _stored_starts(self) -> dict[str, Start]:
        found = self.files.read(START)
        return (
            {} if found is None else {flow: start_of_object(each) for flow, each in json.loads(found)["flows"].items()}
        )

    def _write_starts(self, starts: dict[str, Start]) -> None:
        if not starts:
            self.files.remove(START)
            return
        flows = {
            flow: {"at": each.at, "time_ms": each.time_ms, "offsets": each.offsets} for flow, each in starts.items()
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
    ambiguous: tuple[str, ...] = ()  # topics of which two sources have different offsets


def read_entry(path: Path) -> OffsetEntry | None:
    """Parses a file of Spark's offset log: a version, a line for the batch, a line for each source."""
    try:
        _version, about, *sources = path.read_text(encoding="utf-8").splitlines()
        return OffsetEntry(json.loads(about).get("batchTimestampMs"), merged(sources), tuple(ambiguous_topics(sources)))
    except (OSError, ValueError):
        return None


def numbers(folder: Path) -> list[int]:
    """The batch numbers in a log of Spark."""
    return [int(each.name) for each in folder.iterdir() if each.name.isdecimal()] if folder.is_dir() else []


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
