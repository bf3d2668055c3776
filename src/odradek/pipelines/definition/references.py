"""SQL expressions and Python objects that a definition names."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.places import NOWHERE, Place


@dataclass(frozen=True, slots=True)
class NamedExpression:
    """A SQL expression and the name of the column, header or aggregate that it defines."""

    name: str
    expression: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    expression_place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PythonReference:
    """A function or a class by its import path, `package.module:name`; the folder of its file is searched first."""

    module: str
    name: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"

    @property
    def directory(self) -> str:
        """The folder of the file that names it: an included file may be in another folder than the definition."""
        return str(Path(self.place.file).parent)
