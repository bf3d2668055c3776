"""`odradek doctor`: says what is wrong with a cluster, or with its security, and what to do."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import OptionalArgument, command
from odradek.cli.framework.output import print_json, say, shows_progress
from odradek.cli.framework.parameter_types import POSITIVE, NumberType
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.admin.cluster import Cluster
    from odradek.admin.doctor.finding import Result
    from odradek.admin.doctor.reading import Reader

CLUSTER, SECURITY = "cluster", "security"
LONGEST_COUNT = 2**53
F = TypeVar("F", bound="Callable[..., Any]")


class NoReport(Failure):
    """A failure before the report has the exit code of wrong usage, because 1 says that nothing fails."""

    exit_code = click.UsageError.exit_code


def fails_as_usage(function: F) -> F:
    """Each Failure of the command becomes a NoReport."""

    @functools.wraps(function)
    def with_exit_code(*arguments: Any, **parameters: Any) -> Any:
        try:
            return function(*arguments, **parameters)
        except Failure as failure:
            raise NoReport(failure.message) from None

    return with_exit_code  # type: ignore[return-value]  # a command keeps its type


@command(
    examples=[
        ("what is wrong with the cluster", "odradek doctor"),
        ("is the cluster secured: the checklist of docs/security.md", "odradek doctor security"),
        (
            "on the machine of a broker: also the modes of files with credentials",
            "odradek doctor security --config server.properties",
        ),
        (
            "severities of the findings, for a script",
            "odradek doctor --format json | jq '.findings[].severity'",
        ),
    ]
)
@click.argument(
    "subject",
    cls=OptionalArgument,
    metavar="cluster|security",
    required=False,
    default=CLUSTER,
    type=click.Choice([CLUSTER, SECURITY]),
)
@click.option(
    "--timeout",
    "limit_s",
    type=POSITIVE,
    metavar="SECONDS",
    default=60.0,
    show_default=True,
    help="Time for all checks.",
)
@click.option(
    "--lag-interval",
    "interval_s",
    type=NumberType(0, 3600),
    metavar="SECONDS",
    default=2,
    show_default=True,
    help="Time between two samples of the lag of groups; 0 takes one.",
)
@click.option(
    "--max-lag",
    "most_lag",
    type=NumberType(0, LONGEST_COUNT),
    metavar="RECORDS",
    default=100_000,
    show_default=True,
    help="Lag from which a group is reported.",
)
@click.option(
    "--max-partitions",
    "most_partitions",
    type=NumberType(1, LONGEST_COUNT),
    metavar="N",
    default=4_000,
    show_default=True,
    help="Replicas of a broker from which it is reported.",
)
@click.option(
    "--config",
    "config_file",
    metavar="SERVER.PROPERTIES",
    type=click.Path(exists=True, dir_okay=False),
    help="Of `security`: the properties of a broker on this machine, whose files are checked as well.",
)
@click.option("--all", "shows_all", is_flag=True, help="Show all locations of a finding, not only the first 5.")
@fails_as_usage
@cluster_options
def doctor(
    *,
    subject: str,
    limit_s: float,
    interval_s: int,
    most_lag: int,
    most_partitions: int,
    config_file: str | None,
    shows_all: bool,
    cluster: Cluster,
    as_json: bool,
) -> int:
    """Check a cluster, or its security, and report each problem with its location and what to do.

    It works with any Kafka cluster, over the Kafka protocol alone, and changes nothing. The exit code is 0 if nothing
    was found, 1 after warnings, 2 after problems (and for wrong usage), 3 if checks could not be made, such as those
    that the user has no right to make, and no problem was found.
    """
    from odradek.admin.doctor.finding import exit_code
    from odradek.admin.doctor.reading import Reader

    if config_file is not None and subject != SECURITY:
        raise click.UsageError("--config belongs to `odradek doctor security`")
    reader = Reader(limit_s, show_step)
    if subject == SECURITY:
        cluster_id, results = examine_security(cluster, reader, config_file)
    else:
        cluster_id, results = examine_cluster(cluster, reader, interval_s, most_lag, most_partitions)
    show(subject, cluster, cluster_id, results, shows_all=shows_all, as_json=as_json)
    return exit_code(results)


def show_step(words: str) -> None:
    if shows_progress():
        click.echo(f"\r\x1b[K{words}", nl=False, err=True)
        sys.stderr.flush()


def examine_cluster(
    cluster: Cluster, reader: Reader, interval_s: float, most_lag: int, most_partitions: int
) -> tuple[str | None, list[Result]]:
    from odradek.admin.doctor.cluster.facts import Limits
    from odradek.admin.doctor.cluster.reading import read_cluster
    from odradek.admin.doctor.cluster.registry import CHECKS
    from odradek.admin.doctor.finding import run_checks

    facts = read_cluster(cluster, reader, interval_s, Limits(most_lag, most_partitions))
    cluster_id = facts.state.cluster.cluster_id if facts.state is not None else None
    return cluster_id, run_checks(CHECKS, facts)


def examine_security(cluster: Cluster, reader: Reader, config_file: str | None) -> tuple[str | None, list[Result]]:
    from odradek.admin.doctor.finding import Result, problem, run_checks
    from odradek.admin.doctor.security.reading import read_security
    from odradek.admin.doctor.security.registry import CHECKS

    facts = read_security(cluster, reader, config_file)
    results = run_checks(CHECKS, facts)
    if facts.cluster_id is None:
        advice = "Check the address and the credentials: odradek cluster info -b HOST:PORT"
        found = problem("the cluster does not answer", [facts.reasons["brokers"]], advice)
        results.insert(0, Result("no-broker", "the cluster answers", (found,)))
    return facts.cluster_id, results


def show(
    subject: str, cluster: Cluster, cluster_id: str | None, results: list[Result], *, shows_all: bool, as_json: bool
) -> None:
    from odradek.cli.doctor.report import SHOWN_PLACES, report_lines, report_object

    limit = None if shows_all else SHOWN_PLACES
    if as_json:
        print_json(report_object(subject, cluster_id, results, limit))
        return
    heading = f"{subject} {cluster_id or ''} at {cluster.bootstrap_servers}".replace("  ", " ")
    say("\n".join(report_lines(heading, results, limit)))
