"""A checked definition: the pipeline, as far as it could be parsed, its plan, and its problems."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from odradek.pipelines.definition.places import Problem, ProblemList, Problems

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.model import Parsed, Pipeline
    from odradek.pipelines.definition.vocabulary import Engine
    from odradek.pipelines.planning.plan import Plan


class Way(StrEnum):
    """Which rules judge a definition and which engines run it: a definition of the new way has a plan."""

    OLD = "old"
    NEW = "new"


def way(environment: Mapping[str, str]) -> Way:
    return Way.NEW if environment.get("ODRADEK_PIPELINES") == Way.NEW else Way.OLD


@dataclass(frozen=True, slots=True)
class Definition:
    """A pipeline, as far as it could be parsed, and all problems found in it; its plan, if it runs the new way."""

    pipeline: Pipeline | None
    problems: tuple[Problem, ...]
    is_sound: bool
    plan: Plan | None = None

    def require(self) -> Pipeline:
        """The pipeline, if it can run; otherwise raises `ProblemList` with all problems."""
        if self.pipeline is None or not self.is_sound:
            raise ProblemList(self.problems)
        return self.pipeline


def finished(
    parsed: Parsed | None, problems: Problems, engine: Engine | None = None, chosen: Way = Way.OLD
) -> Definition:
    """Checks a parsed pipeline, and plans it."""
    if parsed is None:
        return Definition(None, tuple(problems), is_sound=False)
    if engine is not None:
        parsed = dataclasses.replace(parsed, pipeline=dataclasses.replace(parsed.pipeline, engine=engine))
    if chosen is Way.NEW:
        from odradek.pipelines.planning.facts import checked_definition  # noqa: PLC0415 - as below

        plan = checked_definition(parsed, problems)
        return Definition(parsed.pipeline, tuple(problems), is_sound=not problems.errors, plan=plan)
    from odradek.pipelines.planning.checks import check_pipeline  # noqa: PLC0415 - a definition that cannot be parsed needs no checks

    check_pipeline(parsed, problems)
    return Definition(parsed.pipeline, tuple(problems), is_sound=not problems.errors)
