"""The outputs of a failed batch that were written before the failure, so that a retry does not write them again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.pipelines.operating.checkpoints import checkpoint_of
from odradek.pipelines.operating.small_files import LocalFiles
from odradek.pipelines.spark.sessions.hadoop_files import HadoopFiles

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.operating.small_files import SmallFiles
    from odradek.pipelines.spark.sinks.warehouse import BatchNumber

FILE = "outputs.json"  # in the folder of the flow's checkpoint, with which it is removed


class WrittenOutputs:
    """A file that exists only after a failed batch."""

    def __init__(self, files: SmallFiles) -> None:
        self._files = files

    @classmethod
    def of_flow(cls, session: SparkSession, pipeline: Pipeline, flow: str) -> WrittenOutputs:
        folder = checkpoint_of(pipeline, flow)
        return cls(HadoopFiles(session, folder) if "://" in folder else LocalFiles(Path(folder)))

    def of(self, batch: BatchNumber) -> frozenset[str]:
        """The names of the outputs of this batch that are written."""
        found = self._read()
        is_same = (found.get("query"), found.get("batch")) == (batch.query, batch.number)
        return frozenset(found["outputs"]) if is_same else frozenset()

    def store(self, batch: BatchNumber, outputs: Collection[str]) -> None:
        if outputs:
            found = {"query": batch.query, "batch": batch.number, "outputs": sorted(outputs)}
            self._files.replace(FILE, json.dumps(found))

    def clear(self) -> None:
        self._files.remove(FILE)

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self._files.read(FILE) or "{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}
