"""Sends Spark's workers the code that they may lack: this package, and the modules next to a definition.

Functions of a definition are sent with the task, but the modules that they import are not. A worker on another machine
may also lack this package.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import odradek
from odradek.pipelines.definition.python_names import python_references

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline

OWN = ("__init__.py", "pipelines")  # without the broker, which workers do not need


def ship_modules(session: SparkSession, pipeline: Pipeline) -> None:
    """Sends the code to every worker, including workers that are added later."""
    folder = Path(tempfile.mkdtemp(prefix="odradek-modules-"))
    # The files must exist as long as the session: Spark reads them whenever a worker is added.
    weakref.finalize(session, shutil.rmtree, folder, ignore_errors=True)
    context = session.sparkContext
    if not str(context.master).startswith("local"):
        package = Path(odradek.__file__).parent
        ours = [file for name in OWN for file in python_files(package / name)]
        context.addPyFile(zipped(folder / "odradek.zip", ours, package.parent))
    for number, directory in enumerate(module_folders(pipeline)):
        theirs = list(modules_in(directory))
        if theirs:
            name = f"{pipeline.name}-modules{number or ''}.zip"
            context.addPyFile(zipped(folder / name, theirs, directory))


def module_folders(pipeline: Pipeline) -> list[Path]:
    """The definition's folder, and those of included files that name Python functions."""
    own = [each.directory for each in python_references(pipeline) if each.place.file]
    return list(dict.fromkeys(Path(each).absolute() for each in (pipeline.directory, *own)))


def modules_in(folder: Path) -> Iterator[Path]:
    """The modules and packages in the folder."""
    for path in sorted(folder.iterdir()):
        if path.suffix == ".py" or (path / "__init__.py").is_file():
            yield from python_files(path)


def python_files(path: Path) -> Iterable[Path]:
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def zipped(target: Path, files: Iterable[Path], root: Path) -> str:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.relative_to(root))
    return str(target)
