"""The folder of a pipeline's checkpoints, with one subfolder for each flow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.spark.sources import below

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline


def checkpoint_folder(pipeline: Pipeline) -> str:
    """The folder in the definition, or one in the user's state folder."""
    if pipeline.checkpoints is not None:
        return below(pipeline, pipeline.checkpoints)
    root = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return str(Path(root) / "odradek" / "pipelines" / pipeline.name / "checkpoints")


def checkpoint_of(pipeline: Pipeline, flow: str) -> str:
    return f"{checkpoint_folder(pipeline).rstrip('/')}/{flow}"


def checkpoint_uri(pipeline: Pipeline, flow: str) -> str:
    """The checkpoint of a flow for Spark, for which a path without a scheme is on Hadoop's default file system.

    Characters are not escaped: Hadoop's paths are no URIs."""
    folder = checkpoint_of(pipeline, flow)
    return folder if "://" in folder else f"file://{os.path.abspath(folder)}"
