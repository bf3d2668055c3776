"""Each security check, on facts that it must find something in; and the checklist of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from odradek.admin.doctor.findings import Severity, exit_code, run_checks
from odradek.admin.doctor.security_facts import AnonymousRights, FileFacts, SecurityFacts
from odradek.admin.doctor.security_rules import CHECKS
from odradek.security.authorizer import Operation
from tests.admin.doctor.security_facts import brokers, listener, rule, secured, tls

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "security.md"
ANYBODY = AnonymousRights(listener("PLAINTEXT"), ("CREATE",), {"orders": ("READ", "DESCRIBE")})

CASES: dict[str, tuple[SecurityFacts, Severity]] = {
    "encryption": (secured(listeners=[listener("SASL_PLAINTEXT")]), Severity.PROBLEM),
    "authentication": (secured(listeners=[listener(ssl_client_auth="requested")]), Severity.PROBLEM),
    "clear-text-passwords": (
        secured(listeners=[listener("SASL_PLAINTEXT", "127.0.0.1", sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-512")]),
        Severity.WARNING,
    ),
    "between-brokers": (
        secured(listeners=[listener("SASL_PLAINTEXT", inter_broker_listener_name="SASL_PLAINTEXT")]),
        Severity.PROBLEM,
    ),
    "certificate-expiry": (secured(tls=[tls(3)]), Severity.PROBLEM),
    "tls-versions": (secured(tls=[tls(versions=("TLSv1.1", "TLSv1.2", "TLSv1.3"))]), Severity.PROBLEM),
    "authorizer": (secured(brokers=brokers(authorizer_class_name="")), Severity.PROBLEM),
    "allow-everyone": (
        secured(brokers=brokers(**{"allow.everyone.if.no.acl.found": "true"})),
        Severity.PROBLEM,
    ),
    "super-users": (secured(brokers=brokers(super_users="User:admin;User:ANONYMOUS")), Severity.PROBLEM),
    "wildcard-rules": (secured(acls=[rule("User:*", Operation.WRITE)]), Severity.PROBLEM),
    "anonymous": (secured(anonymous=[ANYBODY]), Severity.PROBLEM),
    "scram-iterations": (secured(iterations={"bob": 1000}), Severity.WARNING),
    "credential-files": (secured(files=[FileFacts("/etc/broker.pem", 0o640, "private key")]), Severity.PROBLEM),
    "zookeeper": (secured(brokers=brokers(zookeeper_connect="zk:2181")), Severity.PROBLEM),
    "auto-create-topics": (secured(brokers=brokers(auto_create_topics_enable="true")), Severity.WARNING),
    "quotas": (secured(quota_count=0), Severity.WARNING),
    "audit-log": (secured(brokers=brokers(audit_log_path="")), Severity.WARNING),
    "metrics-listener": (secured(brokers=brokers(metrics_listener="0.0.0.0:9644")), Severity.WARNING),
    "console": (secured(consoles=["http://10.0.0.1:8484/"]), Severity.PROBLEM),
}


def test_a_secured_cluster_has_no_findings() -> None:
    results = run_checks(CHECKS, secured())
    assert [result.findings for result in results if result.findings] == []
    assert exit_code(results) == 0


def test_every_check_has_a_case() -> None:
    assert list(CASES) == [check.name for check in CHECKS]


@pytest.mark.parametrize("name", CASES)
def test_a_check_finds_its_case(name: str) -> None:
    facts, severity = CASES[name]
    results = {result.name: result for result in run_checks(CHECKS, facts)}
    (finding,) = results[name].findings
    assert finding.severity is severity
    assert finding.advice


def test_the_checklist_of_the_documentation_is_the_registry() -> None:
    checklist = DOCUMENT.read_text().partition("## Checklist")[2]
    assert re.findall(r"^\| `([a-z-]+)` \|", checklist, re.MULTILINE) == [check.name for check in CHECKS]
    assert "odradek doctor security" in checklist.rstrip().splitlines()[-2]


def test_a_listener_of_this_machine_may_be_plain() -> None:
    facts = secured(listeners=[listener("PLAINTEXT", "127.0.0.1"), listener("PLAINTEXT", "localhost")])
    assert exit_code(run_checks(CHECKS, facts)) == 0


def test_an_expired_certificate_is_a_problem_and_one_of_a_month_a_warning() -> None:
    assert exit_code(run_checks(CHECKS, secured(tls=[tls(-2)]))) == 2
    assert exit_code(run_checks(CHECKS, secured(tls=[tls(29)]))) == 1
    assert exit_code(run_checks(CHECKS, secured(tls=[tls(31)]))) == 0
