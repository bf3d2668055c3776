"""Functions and classes of the user by import path; workers get their code with the task, not by import."""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle

from odradek.pipelines.spark.failures import PipelineError, told_with_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.pipelines.definition.model import PythonReference


class ReferenceBroken(PipelineError):
    """An import path that leads nowhere."""


def load_reference(reference: PythonReference, directory: str) -> Any:
    """What the import path names; the pipeline's own folder is looked in first."""
    try:
        with importable(directory):
            module = importlib.import_module(reference.module)
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
