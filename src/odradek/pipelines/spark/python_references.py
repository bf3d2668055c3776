"""Loads user functions and classes by import path; workers get their code with the task, not by import."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle

from odradek.pipelines.spark.failures import PipelineError, message_with_location

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from odradek.pipelines.definition.references import PythonReference

INSTALLED = ("site-packages", "dist-packages")  # folders of installed packages
_LOCK = threading.Lock()  # several flows may load concurrently


class ReferenceBroken(PipelineError):
    """An import path that cannot be loaded."""


def load_reference(reference: PythonReference, directory: str) -> Any:
    """The object that the import path names."""
    module = load_module(reference, directory)
    if is_user_module(module):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # cloudpickle has no types
    try:
        return getattr(module, reference.name)
    except AttributeError:
        raise ReferenceBroken(
            f"{reference.place}: module {reference.module} does not define {reference.name}"
        ) from None


def load_module(reference: PythonReference, directory: str) -> ModuleType:
    """The module of the import path; the folder of the file that names it is searched first, then the definition's."""
    try:
        with _LOCK:
            return import_from(reference.module, home_of(reference, directory))
    except ImportError as error:
        raise ReferenceBroken(f"{reference.place}: {reference} cannot be imported: {error}") from error
    except Exception as error:
        raise ReferenceBroken(
            f"{reference.place}: {reference} cannot be imported: {message_with_location(error)}"
        ) from error


def home_of(reference: PythonReference, directory: str) -> Path:
    """The folder from which the module is imported: that of an included file if it has the module. Its path is resolved
    to be compared with those of loaded modules."""
    package = reference.module.partition(".")[0]
    own = Path(reference.directory)
    has_module = (own / f"{package}.py").exists() or (own / package).is_dir()
    return (own if reference.place.file and has_module else Path(directory)).resolve()


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
