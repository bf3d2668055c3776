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

from odradek.conventions.dataclass import dataclass
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

BATCH_ARGUMENTS = 2  # the batch and its id


def python_references(pipeline: Pipeline) -> Iterator[PythonReference]:
    """The functions and classes that a definition names."""
    return (reference for reference, _ in called_references(pipeline))


def called_references(pipeline: Pipeline) -> Iterator[tuple[PythonReference, int | None]]:
    """The functions and classes that a definition names, with the number of their arguments where it is known."""
    for step in pipeline.steps:
        operation = step.operation
        if isinstance(operation, PythonFunction):
            yield operation.function, len(operation.inputs)
        elif isinstance(operation, KeyedState):
            yield operation.processor, None
    for sink in pipeline.sinks:
        if isinstance(sink.target, PythonTarget):
            yield sink.target.function, BATCH_ARGUMENTS
    for each in pipeline.functions:
        yield each.reference, None


def check_python(pipeline: Pipeline, problems: Problems) -> None:
    """Reports modules and names that do not exist, and functions that do not take the arguments they get."""
    search = [pipeline.directory, str(Path.cwd()), *sys.path]
    for reference, arguments in called_references(pipeline):
        check_reference(reference, search, arguments, problems)


def check_reference(reference: PythonReference, search: list[str], arguments: int | None, problems: Problems) -> None:
    found, missing = find_module(reference.module, [reference.directory, *search])
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
    if names is None or names.is_open:
        return
    if first not in names.all:
        message = f"module '{reference.module}' does not define '{first}'"
        problems.error(reference.place, message, suggestion(first, sorted(names.all), what="it defines"))
        return
    function = names.functions.get(reference.name)
    if function is not None and arguments is not None and not accepts(function, arguments):
        problems.error(
            reference.place,
            f"{reference} is called with {arguments} argument{'' if arguments == 1 else 's'}, and takes others",
            f"write def {reference.name}({', '.join('abcdefgh'[:arguments])}): …" if arguments <= 8 else "",
        )


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


@dataclass(frozen=True, slots=True)
class ModuleNames:
    """The names that a module defines; `is_open` if it may define others at run time."""

    all: frozenset[str]
    functions: dict[str, ast.FunctionDef]
    is_open: bool


def read_names(spec: ModuleSpec) -> ModuleNames | None:
    """Names in the module's source; None if the source is not readable, `SyntaxError` if it is not valid Python."""
    if spec.origin is None or not spec.origin.endswith(".py"):
        return None
    try:
        tree = ast.parse(Path(spec.origin).read_bytes())
    except SyntaxError:
        raise
    except (OSError, ValueError):
        return None
    names: set[str] = set()
    functions: dict[str, ast.FunctionDef] = {}
    is_open = False
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            is_open = is_open or node.name == "*"
            names.add((node.asname or node.name).partition(".")[0])
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = node
    return ModuleNames(frozenset(names), functions, is_open or "__getattr__" in functions)


def accepts(function: ast.FunctionDef, count: int) -> bool:
    """Whether the function can be called with `count` positional arguments."""
    arguments = function.args
    most = len(arguments.posonlyargs) + len(arguments.args)
    least = most - len(arguments.defaults)
    if any(default is None for default in arguments.kw_defaults):
        return False
    return least <= count and (count <= most or arguments.vararg is not None)


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
