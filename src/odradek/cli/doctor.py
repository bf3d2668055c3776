"""`odradek doctor`: says what is wrong with a cluster, or with its security, and what to do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from odradek.admin.doctor.findings import Finding, Result, Severity, exit_code, run_checks
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import OptionalArgument, command
from odradek.cli.framework.options import flag, option, wrapped
from odradek.cli.framework.output import faint, print_json, say, shows_progress, strong
from odradek.cli.framework.parameter_types import POSITIVE, NumberType
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.admin.doctor.reader import Reader

CLUSTER, SECURITY = "cluster", "security"
LONGEST_COUNT = 2**53
SHOWN_PLACES = 5
LABELS = {Severity.PROBLEM: ("PROBLEM", "red"), Severity.WARNING: ("WARNING", "yellow")}
STATUS = ("ok", "warnings", "problems", "incomplete")  # by exit code
F = TypeVar("F", bound="Callable[..., Any]")


def fails_as_usage(function: F) -> F:
    """A failure before the report has the exit code of wrong usage, because 1 says that nothing fails."""

    def with_exit_code(*arguments: Any, **parameters: Any) -> Any:
        try:
            return function(*arguments, **parameters)
        except Failure as failure:
            failure.exit_code = click.UsageError.exit_code
            raise

    return wrapped(function, with_exit_code)


@command(
    ("what is wrong with the cluster", "odradek doctor"),
    ("is the cluster secured: the checklist of docs/security.md", "odradek doctor security"),
    (
        "on the machine of a broker: also the modes of files with credentials",
        "odradek doctor security --config server.properties",
    ),
    ("severities of the findings, for a script", "odradek doctor --format json | jq '.findings[].severity'"),
)
@click.argument(
    "subject", cls=OptionalArgument, metavar="cluster|security", required=False, default=CLUSTER,
    type=click.Choice([CLUSTER, SECURITY]),
)  # fmt: skip
@option("--timeout limit_s", "SECONDS", POSITIVE, "Time for all checks.", default=60.0)
@option(
    "--lag-interval interval_s", "SECONDS", NumberType(0, 3600),
    "Time between two samples of the lag of groups; 0 takes one.", default=2,
)  # fmt: skip
@option(
    "--max-lag most_lag", "RECORDS", NumberType(0, LONGEST_COUNT), "Lag from which a group is reported.",
    default=100_000,
)  # fmt: skip
@option(
    "--max-partitions most_partitions", "N", NumberType(1, LONGEST_COUNT),
    "Replicas of a broker from which it is reported.", default=4_000,
)  # fmt: skip
@option(
    "--config config_file", "SERVER.PROPERTIES", click.Path(exists=True, dir_okay=False),
    "Of `security`: the properties of a broker on this machine, whose files are checked as well.",
)  # fmt: skip
@flag("--all shows_all", "Show all locations of a finding, not only the first 5.")
@fails_as_usage
@cluster_options
def doctor(
    *, subject: str, limit_s: float, interval_s: int, most_lag: int, most_partitions: int, config_file: str | None,
    shows_all: bool, cluster: Cluster, as_json: bool,
) -> int:  # fmt: skip
    """Check a cluster, or its security, and report each problem with its location and what to do.

    It works with any Kafka cluster, over the Kafka protocol alone, and changes nothing. The exit code is 0 if nothing
    was found, 1 after warnings, 2 after problems (and for wrong usage), 3 if checks could not be made, such as those
    that the user has no right to make, and no problem was found. All checks need Describe and DescribeConfigs on the
    cluster, Describe on all groups, and Describe, DescribeConfigs and Read on all topics.
    """
    from odradek.admin.doctor.reader import Reader

    if config_file is not None and subject != SECURITY:
        raise click.UsageError("--config belongs to `odradek doctor security`")
    reader = Reader(limit_s, show_step)
    if subject == SECURITY:
        cluster_id, seen, results = examine_security(cluster, reader, config_file)
    else:
        cluster_id, seen, results = examine_cluster(cluster, reader, interval_s, most_lag, most_partitions)
    limit = None if shows_all else SHOWN_PLACES
    if as_json:
        print_json(report_object(subject, cluster_id, results, limit) | ({"seen": seen} if seen else {}))
    else:
        heading = strong(f"{subject} {cluster_id or ''} at {cluster.bootstrap_servers}".replace("  ", " "))
        if seen:  # brokers list the topics and groups that the user may describe, and do not say that there are others
            counts = [count_text(count, noun.removesuffix("s")) for noun, count in seen.items()]
            heading += "\n" + faint(f"this user may describe {', '.join(counts)}")
        say("\n".join(report_lines(heading, results, limit)))
    return exit_code(results)


def show_step(words: str) -> None:
    if shows_progress():
        click.echo(f"\r\x1b[K{words}", nl=False, err=True)
        sys.stderr.flush()


def examine_cluster(
    cluster: Cluster, reader: Reader, interval_s: float, most_lag: int, most_partitions: int
) -> tuple[str | None, dict[str, int], list[Result]]:
    """The id of the cluster, the numbers of things that the brokers list, and the results."""
    from odradek.admin.doctor.cluster_facts import Limits, read_cluster
    from odradek.admin.doctor.cluster_rules import CHECKS

    facts = read_cluster(cluster, reader, interval_s, Limits(most_lag, most_partitions))
    results = run_checks(CHECKS, facts)
    if facts.state is None:
        return None, {}, results
    seen = {"brokers": len(facts.state.brokers), "topics": len({each.topic for each in facts.state.partitions})}
    if facts.groups is not None:
        seen["groups"] = len(facts.groups)
    return facts.state.cluster.cluster_id, seen, results


def examine_security(
    cluster: Cluster, reader: Reader, config_file: str | None
) -> tuple[str | None, dict[str, int], list[Result]]:
    """The same, without numbers."""
    from odradek.admin.doctor.cluster_rules import no_broker_answers
    from odradek.admin.doctor.security_facts import read_security
    from odradek.admin.doctor.security_rules import CHECKS

    facts = read_security(cluster, reader, config_file)
    results = run_checks(CHECKS, facts)
    if facts.unreachable is not None:
        results.insert(0, Result("no-broker", tuple(no_broker_answers(facts.unreachable))))
    return facts.cluster_id, {}, results


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
    lines = [heading]
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
