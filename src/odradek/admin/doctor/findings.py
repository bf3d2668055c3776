"""Findings, and the rules that find them in facts. A finding says what is wrong, where, and what to do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from typing import NamedTuple, TypeVar

from odradek.conventions.dataclass import dataclass

RuleFunction = TypeVar("RuleFunction", bound="Callable[..., Iterable[Finding]]")


class Severity(IntEnum):
    """The numbers are the exit codes of the command."""

    WARNING = 1
    PROBLEM = 2


INCOMPLETE = 3  # the exit code if checks could not be made and no problem was found


class Finding(NamedTuple):
    """`where` has every place; the report shows the first ones. `advice` ends with a command where there is one."""

    severity: Severity
    what: str
    where: tuple[str, ...]
    advice: str


def problem(what: str, where: Iterable[str], advice: str) -> Finding:
    return Finding(Severity.PROBLEM, what, tuple(where), advice)


def warning(what: str, where: Iterable[str], advice: str) -> Finding:
    return Finding(Severity.WARNING, what, tuple(where), advice)


def problem_if(is_problem: bool, what: str, where: Iterable[str], advice: str) -> Finding:
    return (problem if is_problem else warning)(what, where, advice)


@dataclass(slots=True, kw_only=True)
class Facts:
    """What was read. A fact that could not be read is None: `reasons` says why, or `unread_reason` for all others. A
    fact that was read in part has a reason as well. `not_requested` has facts that the options do not ask for."""

    reasons: Mapping[str, str] = field(default_factory=dict)
    unread_reason: str = "not read"
    not_requested: Collection[str] = ()


class Check(NamedTuple):
    """A rule by its name in the report. The parameters of the rule are named like the facts that it uses: those with a
    default may be unknown, and it `needs` the others."""

    name: str
    rule: Callable[..., Iterable[Finding]]
    needs: tuple[str, ...]
    uses: tuple[str, ...]


class Checks(list[Check]):
    """The checks of one kind of facts, in the order of the report."""

    def rule(self, name: str) -> Callable[[RuleFunction], RuleFunction]:
        """Adds the decorated function as the rule of this name."""

        def add(rule: RuleFunction) -> RuleFunction:
            parameters = inspect.signature(rule).parameters.values()
            needs = tuple(each.name for each in parameters if each.default is inspect.Parameter.empty)
            uses = tuple(each.name for each in parameters if each.name not in needs)
            self.append(Check(name, rule, needs, uses))
            return rule

        return add


class Result(NamedTuple):
    """The outcome of one check: findings, or the reason why it was not made."""

    name: str
    findings: tuple[Finding, ...] = ()
    skipped: str | None = None
    is_requested: bool = True


def run_checks(checks: Iterable[Check], facts: Facts) -> list[Result]:
    return [_run(check, facts) for check in checks]


def _run(check: Check, facts: Facts) -> Result:
    known = {name: fact for name in check.needs + check.uses if (fact := getattr(facts, name)) is not None}
    missing = [name for name in check.needs if name not in known]
    if missing:
        reason = facts.reasons.get(missing[0], facts.unread_reason)
        return Result(check.name, (), reason, any(name not in facts.not_requested for name in missing))
    findings = tuple(check.rule(**known))
    partly = [facts.reasons[name] for name in check.needs if name in facts.reasons]
    return Result(check.name, findings, partly[0] if partly and not findings else None)


def exit_code(results: Sequence[Result]) -> int:
    """0 if all is well, 1 after warnings, 2 after problems, 3 if there may be problems in what was not examined."""
    worst = max((finding.severity for result in results for finding in result.findings), default=0)
    is_incomplete = any(result.skipped is not None and result.is_requested for result in results)
    return INCOMPLETE if is_incomplete and worst != Severity.PROBLEM else worst
