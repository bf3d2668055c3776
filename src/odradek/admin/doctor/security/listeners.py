"""Rules on listeners: encryption, authentication, what brokers use among themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.doctor.finding import Finding, Severity, problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.admin.doctor.security.facts import ListenerFacts, SecurityFacts

CLEAR_TEXT = frozenset({"PLAIN", "OAUTHBEARER"})


def not_encrypted(facts: SecurityFacts) -> Iterator[Finding]:
    found = [each for each in _exposed(facts) if not each.is_encrypted]
    if found:
        yield problem(
            "listeners that other machines reach do not encrypt",
            [each.place for each in found],
            "Use SSL:// or SASL_SSL:// in listeners, with ssl.keystore.location; to try: odradek secure init DIR",
        )


def not_authenticated(facts: SecurityFacts) -> Iterator[Finding]:
    found = [each for each in _exposed(facts) if not each.is_authenticating]
    if found:
        yield problem(
            "listeners that other machines reach do not authenticate: every client is User:ANONYMOUS",
            [each.place for each in found],
            "Use SASL_SSL:// with sasl.enabled.mechanisms, or SSL:// with ssl.client.auth=required",
        )


def passwords_in_clear_text(facts: SecurityFacts) -> Iterator[Finding]:
    assert facts.listeners is not None
    found = [
        (each, sorted(CLEAR_TEXT & set(each.mechanisms)))
        for each in facts.listeners
        if each.protocol == "SASL_PLAINTEXT" and CLEAR_TEXT & set(each.mechanisms)
    ]
    if found:
        is_exposed = any(each.is_exposed for each, _ in found)
        yield Finding(
            Severity.PROBLEM if is_exposed else Severity.WARNING,
            "listeners without TLS accept mechanisms that send passwords or tokens as they are",
            tuple(f"{each.place}: {', '.join(mechanisms)}" for each, mechanisms in found),
            "Use SASL_SSL:// for them, or only SCRAM-SHA-512 in sasl.enabled.mechanisms",
        )


def between_brokers(facts: SecurityFacts) -> Iterator[Finding]:
    assert facts.brokers is not None
    found = [each for each in _exposed(facts) if _is_between_brokers(each) and not each.is_encrypted]
    if found and len(facts.brokers) > 1:
        yield problem(
            "brokers talk to each other without encryption, on a listener that other machines reach",
            [each.place for each in found],
            "Set inter.broker.listener.name to a listener with SSL or SASL_SSL, and restart the brokers one by one",
        )


def _is_between_brokers(listener: ListenerFacts) -> bool:
    name = listener.settings.get("inter.broker.listener.name")
    if name:
        return listener.name == name.upper()
    return listener.name == listener.settings.get("security.inter.broker.protocol", "PLAINTEXT").upper()


def _exposed(facts: SecurityFacts) -> list[ListenerFacts]:
    assert facts.listeners is not None
    return [each for each in facts.listeners if each.is_exposed]
