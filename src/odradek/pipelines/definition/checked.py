"""A checked definition: the pipeline, as far as it could be parsed, and its problems."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.pipelines.definition.places import Problem, ProblemList, Problems

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Parsed, Pipeline
    from odradek.pipelines.definition.vocabulary import Engine


@dataclass(frozen=True, slots=True)
class Definition:
    """A pipeline, as far as it could be parsed, and all problems found in it."""

    pipeline: Pipeline | None
    problems: tuple[Problem, ...]
    is_sound: bool

    def require(self) -> Pipeline:
        """The pipeline, if it can run; otherwise raises `ProblemList` with all problems."""
        if self.pipeline is None or not self.is_sound:
            raise ProblemList(self.problems)
        return self.pipeline


def finished(parsed: Parsed | None, problems: Problems, engine: Engine | None = None) -> Definition:
    """Checks a parsed pipeline."""
    if parsed is None:
        return Definition(None, tuple(problems), is_sound=False)
    if engine is not None:
        parsed = dataclasses.replace(parsed, pipeline=dataclasses.replace(parsed.pipeline, engine=engine))
    from odradek.pipelines.planning.checks import check_pipeline  # noqa: PLC0415 - a definition that cannot be parsed needs no checks

    check_pipeline(parsed, problems)
    return Definition(parsed.pipeline, tuple(problems), is_sound=not problems.errors)
