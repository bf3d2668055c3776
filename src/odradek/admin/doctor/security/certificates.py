"""Rules on TLS: certificates that expire, versions that are old."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.doctor.finding import Finding, Severity, problem, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.admin.doctor.security.facts import SecurityFacts

FEW_DAYS = 30
VERY_FEW_DAYS = 7
OLD_VERSIONS = frozenset({"TLSv1", "TLSv1.1"})


def expiry(facts: SecurityFacts) -> Iterator[Finding]:
    assert facts.tls is not None
    unread = [each for each in facts.tls if each.error is not None]
    if unread:
        yield warning(
            "certificates could not be read: the TLS handshake failed",
            [f"{each.listener.place}: {each.error}" for each in unread],
            "Check the keystore of the listener, and that this machine reaches it",
        )
    for severity, first, last in (
        (Severity.PROBLEM, float("-inf"), VERY_FEW_DAYS),
        (Severity.WARNING, VERY_FEW_DAYS, FEW_DAYS),
    ):
        found = [each for each in facts.tls if each.days_left is not None and first < each.days_left <= last]
        if found:
            yield Finding(
                severity,
                "certificates expire soon, or have expired",
                tuple(f"{each.listener.place}: {_days(each.days_left or 0)}" for each in found),
                "Replace the file that ssl.keystore.location names: the broker reads it again without a restart",
            )


def versions(facts: SecurityFacts) -> Iterator[Finding]:
    assert facts.tls is not None
    old = [each for each in facts.tls if OLD_VERSIONS & set(each.versions)]
    if old:
        yield problem(
            "listeners accept versions of TLS that are broken",
            [f"{each.listener.place}: {', '.join(sorted(OLD_VERSIONS & set(each.versions)))}" for each in old],
            "Set ssl.enabled.protocols=TLSv1.2,TLSv1.3",
        )
    without = [each for each in facts.tls if each.versions and "TLSv1.3" not in each.versions]
    if without:
        yield warning(
            "listeners do not offer TLS 1.3",
            [each.listener.place for each in without],
            "Set ssl.enabled.protocols=TLSv1.2,TLSv1.3, and leave ssl.cipher.suites unset",
        )


def _days(days: float) -> str:
    return f"expired {-days:.0f} days ago" if days < 0 else f"{days:.0f} days left"
