"""Findings and checks. A check is a pure rule over facts; a finding says what is wrong, where, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

F = TypeVar("F", bound="Facts")


class Severity(IntEnum):
    """The numbers are the exit codes of the command."""

    WARNING = 1
    PROBLEM = 2


INCOMPLETE = 3  # the exit code if checks could not be made and no problem was found


@dataclass(frozen=True, slots=True)
class Finding:
    """`where` has every place; the report shows the first ones. `advice` ends with a command where there is one."""

    severity: Severity
    what: str
    where: tuple[str, ...]
    advice: str


def problem(what: str, where: Iterable[str], advice: str) -> Finding:
    return Finding(Severity.PROBLEM, what, tuple(where), advice)


def warning(what: str, where: Iterable[str], advice: str) -> Finding:
    return Finding(Severity.WARNING, what, tuple(where), advice)


class Facts:
    """What was read. A fact that could not be read is None, and `reasons` says why; a fact that was read in part has a
    reason as well. Facts that the options of the command do not ask for are in `not_requested`."""

    reasons: Mapping[str, str]
    not_requested: Collection[str]


@dataclass(frozen=True, slots=True)
class Check(Generic[F]):
    """`needs` are the names of the facts that the rule uses."""

    name: str
    title: str
    needs: tuple[str, ...]
    examine: Callable[[F], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one check: findings, or the reason why it was not made."""

    name: str
    title: str
    findings: tuple[Finding, ...] = ()
    skipped: str | None = None
    is_requested: bool = True


def run_checks(checks: Sequence[Check[F]], facts: F) -> list[Result]:
    return [_run(check, facts) for check in checks]


def _run(check: Check[F], facts: F) -> Result:
    missing = [name for name in check.needs if getattr(facts, name) is None]
    if missing:
        reason = facts.reasons.get(missing[0], "not read")
        is_requested = any(name not in facts.not_requested for name in missing)
        return Result(check.name, check.title, skipped=reason, is_requested=is_requested)
    findings = tuple(check.examine(facts))
    partly = [facts.reasons[name] for name in check.needs if name in facts.reasons]
    return Result(check.name, check.title, findings, partly[0] if partly and not findings else None)


def exit_code(results: Sequence[Result]) -> int:
    """0 if all is well, 1 after warnings, 2 after problems, 3 if there may be problems in what was not examined."""
    worst = max((finding.severity for result in results for finding in result.findings), default=0)
    is_incomplete = any(result.skipped is not None and result.is_requested for result in results)
    return INCOMPLETE if is_incomplete and worst != Severity.PROBLEM else worst
