"""The code of users: loads functions and classes by import path, and sends workers what they may lack.

Functions of a definition are sent with the task, but the modules that they import are not. A worker on another machine
may also lack this package.
"""

from __future__ import annotations

import functools
import importlib
import shutil
import sys
import tempfile
import threading
import weakref
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle

import odradek
from odradek.pipelines.spark.sessions.failures import PipelineError, message_with_location

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.operations import PythonReference

INSTALLED = ("site-packages", "dist-packages")  # folders of installed packages
_LOCK = threading.Lock()  # several flows may load concurrently


def load_reference(reference: PythonReference, directory: str) -> Any:
    """The object that the import path names."""
    module = load_module(reference, directory)
    if is_user_module(module):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # cloudpickle has no types
    if not hasattr(module, reference.name):
        raise PipelineError(f"{reference.place}: module {reference.module} does not define {reference.name}")
    return getattr(module, reference.name)


def load_module(reference: PythonReference, directory: str) -> ModuleType:
    """The module of the import path; the definition's folder is searched first. Its path is resolved to be compared
    with those of loaded modules."""
    try:
        with _LOCK:
            return import_from(reference.module, Path(directory).resolve())
    except Exception as error:
        reason = str(error) if isinstance(error, ImportError) else message_with_location(error)
        raise PipelineError(f"{reference.place}: {reference} cannot be imported: {reason}") from error


@functools.cache
def import_from(name: str, directory: Path) -> ModuleType:
    """Imports the module from this folder, although a module of another pipeline may have the same name."""
    with importable(directory):
        for other in [each for each, module in sys.modules.items() if is_same_name_elsewhere(each, module, directory)]:
            del sys.modules[other]
        importlib.invalidate_caches()
        return importlib.import_module(name)


def is_same_name_elsewhere(name: str, module: Any, directory: Path) -> bool:
    """Whether a loaded module has the name of one in the folder but is another file."""
    package = name.partition(".")[0]
    if package in sys.stdlib_module_names or not is_user_module(module):
        return False
    places = [(directory / each).resolve() for each in (f"{package}.py", package)]
    file = Path(module.__file__).resolve()
    return any(place.exists() for place in places) and not any(
        file == place or place in file.parents for place in places
    )


def is_user_module(module: Any) -> bool:
    """Whether the module is not installed, so that a worker could not import it. A module beside a definition that was
    installed with a package is not installed itself: nobody imports it from site-packages."""
    file = getattr(module, "__file__", None)
    if not file:
        return False
    path = Path(file)
    package = path.parent if path.stem == "__init__" else path
    return package.parents[module.__name__.count(".")].name not in INSTALLED


@contextmanager
def importable(directory: Path) -> Iterator[None]:
    sys.path.insert(0, str(directory))
    try:
        yield
    finally:
        sys.path.remove(str(directory))


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
    theirs = list(modules_in(Path(pipeline.directory).absolute()))
    if theirs:
        name = f"{pipeline.name}-modules.zip"
        context.addPyFile(zipped(folder / name, theirs, Path(pipeline.directory).absolute()))


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
