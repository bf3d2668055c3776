"""The outputs of a failed batch that were written before the failure, so that a retry does not write them again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.pipelines.spark.checkpoints import checkpoint_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.spark.sinks.warehouse import BatchNumber

FILE = "outputs.json"  # in the folder of the flow's checkpoint, with which it is removed


class WrittenOutputs:
    """A file that exists only after a failed batch. Without a path nothing is stored."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @classmethod
    def of_flow(cls, pipeline: Pipeline, flow: str) -> WrittenOutputs:
        folder = checkpoint_of(pipeline, flow)
        return cls(None if "://" in folder else Path(folder) / FILE)

    def of(self, batch: BatchNumber) -> frozenset[str]:
        """The names of the outputs of this batch that are written."""
        found = self._read()
        is_same = (found.get("query"), found.get("batch")) == (batch.query, batch.number)
        return frozenset(found["outputs"]) if is_same else frozenset()

    def store(self, batch: BatchNumber, outputs: Collection[str]) -> None:
        if self._path is not None and outputs:
            found = {"query": batch.query, "batch": batch.number, "outputs": sorted(outputs)}
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(found), encoding="utf-8")

    def clear(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads("{}" if self._path is None else self._path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):  # ValueError: the process died while it wrote the file
            return {}
        return found if isinstance(found, dict) else {}
