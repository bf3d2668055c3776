"""Loads pipelines from a Python file by importing it under its own module name."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.definition.checked import Definition, finished
from odradek.pipelines.definition.choices import NO_CHOICES
from odradek.pipelines.definition.decorators import Pipeline
from odradek.pipelines.definition.places import Place, Problems
from odradek.pipelines.definition.text_files import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from odradek.pipelines.definition.choices import Choices
    from odradek.pipelines.definition.vocabulary import Engine


def load_python(
    file: str,
    engine: Engine | None = None,
    environment: Mapping[str, str] | None = None,
    choices: Choices = NO_CHOICES,
) -> list[Definition]:
    """All pipelines in the file's module, in the order of the file."""
    problems = Problems()
    if read_text(file, problems) is None:
        return [finished(None, problems)]
    module = import_file(file, problems)
    if module is None:
        return [finished(None, problems)]
    found = list(dict.fromkeys(each for each in vars(module).values() if isinstance(each, Pipeline)))
    if not found:
        hint = 'from odradek.pipelines import Pipeline; name = Pipeline("name")'
        problems.error(Place(file, 1, 1), "the file does not define a pipeline", hint)
        return [finished(None, problems)]
    return [each.define(engine, environment, choices) for each in found]


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
