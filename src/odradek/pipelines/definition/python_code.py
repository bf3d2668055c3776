"""The Python code of a definition: what it names by import path, and its own file if it is written in Python.

What is named is looked for without importing it, so that no user code runs.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
import traceback
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import PythonTarget
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.operations import KeyedState, PythonFunction
from odradek.pipelines.definition.places import Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.operations import PythonReference
    from odradek.pipelines.definition.places import Problems


def python_references(pipeline: Pipeline) -> Iterator[PythonReference]:
    """The functions and classes that a definition names."""
    for step in pipeline.steps:
        if isinstance(step.operation, PythonFunction):
            yield step.operation.function
        elif isinstance(step.operation, KeyedState):
            yield step.operation.processor
    yield from (each.target.function for each in pipeline.sinks if isinstance(each.target, PythonTarget))


def check_python(pipeline: Pipeline, problems: Problems) -> None:
    """Reports modules and names that do not exist."""
    search = [pipeline.directory, str(Path.cwd()), *sys.path]
    for reference in python_references(pipeline):
        check_reference(reference, search, problems)


def check_reference(reference: PythonReference, search: list[str], problems: Problems) -> None:
    found, missing = find_module(reference.module, search)
    if found is None:
        hint = "modules are searched for next to the definition, in the working directory and among installed packages"
        problems.error(reference.place, f"module '{missing}' of {reference} was not found", hint)
        return
    try:
        names = read_names(found)
    except SyntaxError as error:
        problems.error(reference.place, f"{found.origin} is not valid Python: {error.msg} in line {error.lineno}")
        return
    first = reference.name.partition(".")[0]
    if names is not None and first not in names:
        message = f"module '{reference.module}' does not define '{first}'"
        problems.error(reference.place, message, suggestion(first, sorted(names), what="it defines"))


def find_module(name: str, search: list[str]) -> tuple[ModuleSpec | None, str]:
    """The module's spec, or None and the first part of its dotted name that does not exist; nothing is imported."""
    path: list[str] | None = search
    full = ""
    spec = None
    for part in name.split("."):
        full = f"{full}.{part}" if full else part
        spec = PathFinder.find_spec(full, path)
        if spec is None:
            return None, full
        path = list(spec.submodule_search_locations or [])
    return spec, full


def read_names(spec: ModuleSpec) -> set[str] | None:
    """Names in the module's source; None if it is not readable or may define others at run time, `SyntaxError` if it is
    not valid Python."""
    if spec.origin is None or not spec.origin.endswith(".py"):
        return None
    try:
        tree = ast.parse(Path(spec.origin).read_bytes())
    except (OSError, ValueError):
        return None
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
    return None if names & {"*", "__getattr__"} else names


def module_name(path: Path) -> tuple[str, Path]:
    """The module name by which the file is importable, and the folder to import it from."""
    parts = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), folder


def import_file(file: str, problems: Problems) -> ModuleType | None:
    """The module; an exception that it raises becomes a problem at the line of the file that caused it."""
    path = Path(file).resolve()
    name, folder = module_name(path)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        problems.error(Place(file, 1, 1), "this is not a Python file", "rename it to NAME.py")
        return None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        where = Place(error.filename or file, error.lineno or 1, error.offset or 1)
        problems.error(where, f"the file is not valid Python: {error.msg}", "fix the line")
    except Exception as error:  # user code may raise anything, SystemExit included
        lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == spec.origin]
        message = f"importing the file failed: {type(error).__name__}: {error}"
        problems.error(Place(file, (lines or [1])[-1] or 1, 1), message, "run it with Python to see the traceback")
    else:
        return module
    if before is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = before
    return None
