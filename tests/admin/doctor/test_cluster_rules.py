"""Each check of a cluster, on facts that it must find something in, and on those of a healthy cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from odradek.admin.broker_requests import KnownBroker
from odradek.admin.doctor.cluster_facts import GroupChange, GroupFacts, Limits
from odradek.admin.doctor.cluster_rules import CHECKS
from odradek.admin.doctor.findings import Severity, exit_code, run_checks
from odradek.admin.log_directories import Disks
from odradek.admin.transactions import OpenTransaction
from odradek.conventions.failures import Failure
from tests.admin.doctor.cluster_facts import GB, contact, directory, healthy, partition, state

if TYPE_CHECKING:
    from odradek.admin.doctor.cluster_facts import ClusterFacts

HANGING = OpenTransaction("orders", 0, KnownBroker(1, "kafka-1", 9092, None, is_fenced=False), 7, 0, 0, 42, 0)
CASES: dict[str, tuple[ClusterFacts, Severity, str]] = {
    "no-broker": (healthy(unreachable=Failure("connection refused")), Severity.PROBLEM, "cluster info"),
    "broker-unreachable": (
        healthy(contacts=[contact(1), contact(2, error="timed out")]),
        Severity.PROBLEM,
        "advertised.listeners",
    ),
    "broker-fenced": (
        healthy(state=state(partition(), fenced=(3,)), contacts=[contact(1), contact(3, error="timed out")]),
        Severity.PROBLEM,
        "--drain 3 --wait &&",
    ),
    "controller": (healthy(state=state(partition(), controller=None)), Severity.PROBLEM, "--watch"),
    "advertised-address": (healthy(contacts=[contact(1, addresses=("127.0.0.1",))]), Severity.PROBLEM, "advertised"),
    "mixed-versions": (healthy(contacts=[contact(1), contact(2, apis={0: (3, 11)})]), Severity.WARNING, "upgrade"),
    "partition-offline": (healthy(state=state(partition(leader=-1, in_sync=()))), Severity.PROBLEM, "--unclean"),
    "under-min-isr": (healthy(state=state(partition(in_sync=(1,), min_in_sync=2))), Severity.PROBLEM, "--wait"),
    "under-replicated": (healthy(state=state(partition(in_sync=(1, 2)))), Severity.WARNING, "cluster status"),
    "preferred-leaders": (
        healthy(state=state(*(partition(index=index, leader=2) for index in range(3)))),
        Severity.WARNING,
        "partition elect",
    ),
    "reassignment-stuck": (
        healthy(state=state(partition(replicas=(1, 2, 9), in_sync=(1, 2), adding=(9,)))),
        Severity.WARNING,
        "--cancel",
    ),
    "partitions-per-broker": (
        healthy(state=state(partition(), partition(index=1)), limits=Limits(most_partitions_per_broker=1)),
        Severity.WARNING,
        "reassign",
    ),
    "replication-factor": (
        healthy(state=state(partition(replicas=(1,)))),
        Severity.WARNING,
        "odradek partition reassign orders --replication-factor 3",
    ),
    "internal-topics": (
        healthy(state=state(partition("__consumer_offsets", replicas=(1,)))),
        Severity.PROBLEM,
        "odradek partition reassign __consumer_offsets --replication-factor 3",
    ),
    "min-isr-of-all": (
        healthy(topic_settings={"orders": {"min.insync.replicas": "3"}}),
        Severity.WARNING,
        "--set min.insync.replicas=2",
    ),
    "unclean-election": (
        healthy(topic_settings={"orders": {"unclean.leader.election.enable": "true"}}),
        Severity.WARNING,
        "--set unclean.leader.election.enable=false",
    ),
    "log-directory-failed": (healthy(disks=Disks({}, (directory(error_code=56),))), Severity.PROBLEM, "log verify"),
    "disk-full": (healthy(disks=Disks({}, (directory(usable_bytes=GB),))), Severity.PROBLEM, "retention.ms"),
    "disk-skew": (
        healthy(disks=Disks({}, (directory(1, stored_bytes=90 * GB), directory(2), directory(3)))),
        Severity.WARNING,
        "reassign",
    ),
    "retention": (healthy(topic_settings={"orders": {"retention.bytes": str(99 * GB)}}), Severity.WARNING, "retention"),
    "group-lag": (healthy(groups=[GroupFacts("billing", "Stable", 100_001)]), Severity.WARNING, "describe billing"),
    "group-lag-growing": (
        healthy(
            groups=[GroupFacts("billing", "Stable", 5_000)],
            group_changes={"billing": GroupChange("Stable", 4_000, 2_000.0)},
        ),
        Severity.WARNING,
        "describe billing",
    ),
    "group-abandoned": (healthy(groups=[GroupFacts("old", "Empty", 5)]), Severity.WARNING, "group delete old"),
    "group-unstable": (
        healthy(
            groups=[GroupFacts("billing", "PreparingRebalance")],
            group_changes={"billing": GroupChange("CompletingRebalance")},
        ),
        Severity.WARNING,
        "max.poll.interval.ms",
    ),
    "transaction-hanging": (
        healthy(hanging=[HANGING]),
        Severity.PROBLEM,
        "odradek transaction abort orders --partition 0 --start-offset 42",
    ),
    "open-files": (healthy(open_files={1: (900, 1024)}), Severity.WARNING, "LimitNOFILE"),
    "clock-skew": (healthy(ahead_ms={"__consumer_offsets-3": 9_000}), Severity.WARNING, "chrony"),
}


def test_a_healthy_cluster_has_no_findings() -> None:
    results = run_checks(CHECKS, healthy())
    assert [result.findings for result in results if result.findings] == []
    assert exit_code(results) == 0


def test_every_check_has_a_case() -> None:
    assert list(CASES) == [check.name for check in CHECKS]


def test_a_broker_that_runs_and_is_fenced_is_not_reached_by_the_controller() -> None:
    facts = healthy(state=state(partition(), fenced=(2, 3)), contacts=[contact(1), contact(2), contact(3, error="x")])
    results = {result.name: result for result in run_checks(CHECKS, facts)}
    runs, is_down = results["broker-fenced"].findings
    assert [*runs.where] == ["broker 2 at kafka-2:9092"]
    assert "inter.broker.listener.name" in runs.advice
    assert [*is_down.where] == ["broker 3 at kafka-3:9092"]


@pytest.mark.parametrize("name", CASES)
def test_a_check_finds_its_case_and_says_what_to_do(name: str) -> None:
    facts, severity, advice = CASES[name]
    results = {result.name: result for result in run_checks(CHECKS, facts)}
    (finding,) = results[name].findings
    assert finding.severity is severity
    assert advice in finding.advice
    assert finding.where or name == "controller"


def test_a_controller_that_the_cluster_does_not_report_is_no_finding_and_not_named() -> None:
    known = state(partition())
    unknown = replace(known, cluster=known.cluster._replace(controller_id=None, knows_controller=False))
    assert exit_code(run_checks(CHECKS, healthy(state=unknown))) == 0
    silent = replace(unknown, knows_reassignments=False)
    (finding,) = {each.name: each for each in run_checks(CHECKS, healthy(state=silent))}["controller"].findings
    assert "no controller answers" in finding.what
    assert "broker" not in finding.what


def test_exit_code_is_that_of_the_worst_finding() -> None:
    assert exit_code(run_checks(CHECKS, CASES["clock-skew"][0])) == 1
    assert exit_code(run_checks(CHECKS, CASES["partition-offline"][0])) == 2


def test_a_loopback_address_is_usable_on_its_own_machine() -> None:
    facts = healthy(contacts=[contact(1, addresses=("127.0.0.1",))], from_elsewhere=False)
    assert exit_code(run_checks(CHECKS, facts)) == 0


def test_a_single_broker_may_have_topics_with_one_replica() -> None:
    facts = healthy(state=state(partition(replicas=(1,))))
    assert facts.state is not None
    del facts.state.brokers[2], facts.state.brokers[3]
    assert exit_code(run_checks(CHECKS, facts)) == 0


def test_facts_that_could_not_be_read_are_reported_as_not_examined() -> None:
    facts = healthy(disks=None, reasons={"disks": "not authorized"})
    skipped = {result.name: result.skipped for result in run_checks(CHECKS, facts) if result.skipped}
    assert skipped == dict.fromkeys(["log-directory-failed", "disk-full", "disk-skew", "retention"], "not authorized")
