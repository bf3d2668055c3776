"""Functions and classes of the user by import path; workers get their code with the task, not by import."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle

from odradek.pipelines.spark.failures import PipelineError, told_with_place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from odradek.pipelines.definition.model import PythonReference

_LOCK = threading.Lock()  # batches of several flows ask at once


class ReferenceBroken(PipelineError):
    """An import path that leads nowhere."""


def load_reference(reference: PythonReference, directory: str) -> Any:
    """What the import path names; the pipeline's own folder is looked in first."""
    try:
        with _LOCK:
            module = import_from(reference.module, directory)
    except ImportError as error:
        raise ReferenceBroken(f"{reference.place}: {reference} cannot be imported: {error}") from error
    except Exception as error:
        raise ReferenceBroken(f"{reference.place}: {reference} cannot be imported: {told_with_place(error)}") from error
    if is_users_own(module):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        return getattr(module, reference.name)
    except AttributeError:
        raise ReferenceBroken(f"{reference.place}: module {reference.module} has no {reference.name}") from None


@functools.cache
def import_from(name: str, directory: str) -> ModuleType:
    """The module as this folder has it: another pipeline may have modules of the same names."""
    with importable(directory):
        for other in [each for each, module in sys.modules.items() if is_namesake(each, module, directory)]:
            del sys.modules[other]
        importlib.invalidate_caches()
        return importlib.import_module(name)


def is_namesake(name: str, module: Any, directory: str) -> bool:
    """Whether the folder has a module of this name that is another one."""
    package = name.partition(".")[0]
    if package in sys.stdlib_module_names or not is_users_own(module):
        return False
    places = [Path(directory, f"{package}.py"), Path(directory, package)]
    file = Path(module.__file__)
    return any(place.exists() for place in places) and not any(
        file == place or place in file.parents for place in places
    )


def is_users_own(module: Any) -> bool:
    """Not installed: a worker on another machine could not import it."""
    return "site-packages" not in (getattr(module, "__file__", None) or "site-packages")


@contextmanager
def importable(directory: str) -> Iterator[None]:
    sys.path.insert(0, directory)
    try:
        yield
    finally:
        sys.path.remove(directory)
