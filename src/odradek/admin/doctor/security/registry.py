"""The one list of security checks; docs/security.md has the same, in the same order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.doctor.finding import Check
from odradek.admin.doctor.security import access, certificates, hygiene, listeners

if TYPE_CHECKING:
    from odradek.admin.doctor.security.facts import SecurityFacts

CHECKS: tuple[Check[SecurityFacts], ...] = (
    Check("encryption", "exposed listeners encrypt", ("listeners",), listeners.not_encrypted),
    Check("authentication", "exposed listeners authenticate", ("listeners",), listeners.not_authenticated),
    Check("clear-text-passwords", "passwords are encrypted", ("listeners",), listeners.passwords_in_clear_text),
    Check("between-brokers", "brokers encrypt", ("listeners", "brokers"), listeners.between_brokers),
    Check("certificate-expiry", "certificates are valid", ("tls",), certificates.expiry),
    Check("tls-versions", "TLS is recent", ("tls",), certificates.versions),
    Check("authorizer", "brokers have an authorizer", ("brokers",), access.no_authorizer),
    Check("allow-everyone", "what no rule names is denied", ("brokers",), access.allow_everyone),
    Check("super-users", "super users are few", ("brokers",), access.super_users),
    Check("wildcard-rules", "rules name principals", ("acls",), access.wildcard_rules),
    Check("anonymous", "clients without credentials may do nothing", ("anonymous",), access.anonymous_clients),
    Check("scram-iterations", "passwords are costly to guess", ("iterations",), hygiene.scram_iterations),
    Check("credential-files", "files with credentials are private", ("files",), hygiene.credential_files),
    Check("zookeeper", "ZooKeeper is closed", ("brokers",), hygiene.zookeeper),
    Check("auto-create-topics", "topics are created on purpose", ("brokers",), hygiene.auto_created_topics),
    Check("quotas", "clients are limited", ("quota_count",), hygiene.no_quotas),
    Check("audit-log", "denials and changes are logged", ("brokers",), hygiene.no_audit_log),
    Check("metrics-listener", "metrics are private", ("brokers",), hygiene.exposed_metrics),
    Check("console", "consoles need a login", ("consoles",), hygiene.exposed_console),
)
