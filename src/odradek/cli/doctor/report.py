"""The results of checks as text and as an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from odradek.admin.doctor.finding import Severity, exit_code
from odradek.cli.framework.output import faint, strong
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.doctor.finding import Finding, Result

SHOWN_PLACES = 5
STATUS = ("ok", "warnings", "problems", "incomplete")  # by exit code
LABELS = {Severity.PROBLEM: ("PROBLEM", "red"), Severity.WARNING: ("WARNING", "yellow")}


def report_object(subject: str, cluster_id: str | None, results: Sequence[Result], limit: int | None) -> dict[str, Any]:
    return {
        "subject": subject,
        "cluster_id": cluster_id,
        "status": STATUS[exit_code(results)],
        "findings": [
            {
                "check": result.name,
                "severity": finding.severity.name.lower(),
                "what": finding.what,
                "where": list(finding.where[:limit]),
                "where_count": len(finding.where),
                "advice": finding.advice,
            }
            for result, finding in _by_severity(results)
        ],
        "passed": [result.name for result in results if not result.findings and result.skipped is None],
        "not_examined": [
            {"check": result.name, "reason": result.skipped} for result in results if result.skipped is not None
        ],
    }


def report_lines(heading: str, results: Sequence[Result], limit: int | None) -> list[str]:
    lines = [strong(heading)]
    for result, finding in _by_severity(results):
        label, color = LABELS[finding.severity]
        lines += ["", f"{click.style(label, fg=color, bold=True)}  {finding.what}  {faint(f'[{result.name}]')}"]
        lines += [f"  {place}" for place in finding.where[:limit]]
        hidden = len(finding.where) - (len(finding.where) if limit is None else limit)
        lines += [faint(f"  and {hidden:,} more; --all shows them")] if hidden > 0 else []
        lines += [f"  {click.style('→', bold=True)} {finding.advice}"]
    return [*lines, *_skipped_lines(results), "", _summary(results)]


def _skipped_lines(results: Sequence[Result]) -> list[str]:
    """Checks that share a reason share a line."""
    by_reason: dict[str, list[str]] = {}
    for result in results:
        if result.skipped is not None:
            by_reason.setdefault(result.skipped, []).append(result.name)
    lines = [f"not examined ({reason}): {', '.join(names)}" for reason, names in by_reason.items()]
    return ["", *map(faint, lines)] if lines else []


def _summary(results: Sequence[Result]) -> str:
    findings = [finding.severity for result in results for finding in result.findings]
    passed = sum(not result.findings and result.skipped is None for result in results)
    found = [
        count_text(findings.count(severity), severity.name.lower())
        for severity in sorted(LABELS, reverse=True)
        if severity in findings
    ]
    skipped = sum(result.skipped is not None for result in results)
    rest = f", {skipped} not examined" if skipped else ""
    return f"{', '.join(found) or 'nothing found'}; {passed} of {len(results)} checks passed{rest}"


def _by_severity(results: Sequence[Result]) -> list[tuple[Result, Finding]]:
    found = [(result, finding) for result in results for finding in result.findings]
    return sorted(found, key=lambda each: -each[1].severity)
