"""Problems of a definition and their places in its files."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.secrets import hidden

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a text that lies in one line of the file: its start in the text, and its start in the file."""

    line: int
    column: int
    file_line: int
    file_column: int


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a file; lines and columns count from 1.

    The place of a multi-line text has segments, so that an error inside a block of SQL is reported at its own line.
    """

    file: str
    line: int
    column: int
    segments: tuple[Segment, ...] = field(default=(), compare=False, repr=False)

    def inside(self, line: int, column: int) -> Place:
        """The place of a line and column (both from 1) within the text that starts at this place."""
        before = [each for each in self.segments if (each.line, each.column) <= (line, column)]
        if not before:
            return Place(self.file, self.line, self.column)
        last = before[-1]
        distance = column - last.column if last.line == line else 0
        return Place(self.file, last.file_line, last.file_column + distance)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


NOWHERE = Place("", 0, 0)


class Severity(StrEnum):
    """An error prevents the pipeline from running; a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a definition: its place, what is wrong, a hint how to fix it, and the code of the rule."""

    place: Place
    message: str
    hint: str = ""
    severity: Severity = Severity.ERROR
    code: str = ""  # OP001 …

    def __str__(self) -> str:
        return f"{self.place}: {self.severity}{' ' if self.code else ''}{self.code}: {self.text}"

    @property
    def text(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class ProblemList(Exception):
    """All problems of a definition, ordered by place."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda each: (each.place.file, each.place.line, each.place.column)))
        super().__init__("\n".join(map(str, self.problems)))

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.problems)


class Problems:
    """Collects the problems of a definition, so that all are reported together. Values of `secrets` are hidden."""

    def __init__(self) -> None:
        self._found: dict[Problem, None] = {}
        self.secrets: set[str] = set()

    def error(self, place: Place, message: str, hint: str = "", code: str = "") -> None:
        self._add(place, message, hint, Severity.ERROR, code)

    def warning(self, place: Place, message: str, hint: str = "", code: str = "") -> None:
        self._add(place, message, hint, Severity.WARNING, code)

    def _add(self, place: Place, message: str, hint: str, severity: Severity, code: str) -> None:
        problem = Problem(place, hidden(message, self.secrets), hidden(hint, self.secrets), severity, code)
        self._found[problem] = None

    def __iter__(self) -> Iterator[Problem]:
        return iter(ProblemList(self._found))

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(each for each in self if each.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(each for each in self if each.severity is Severity.WARNING)
