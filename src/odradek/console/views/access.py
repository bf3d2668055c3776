"""Users, access rules and quotas as they are shown, and the forms that describe them. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.console.cluster import access
from odradek.console.views.figures import FormError, has_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ENTITY_TYPES = (("user", "User"), ("client-id", "Client id"), ("ip", "Address"))


class UserRow(NamedTuple):
    name: str
    mechanisms: str
    iterations: str


def user_rows(credentials: Iterable[access.Credential], search: str) -> list[UserRow]:
    """One row for each user whose name has all words of the search."""
    by_name: dict[str, list[access.Credential]] = {}
    for each in credentials:
        by_name.setdefault(each.user, []).append(each)
    return [
        UserRow(
            name,
            ", ".join(each.mechanism for each in found),
            ", ".join(sorted({f"{each.iterations:,}" for each in found})),
        )
        for name, found in sorted(by_name.items())
        if has_words(name, search)
    ]


class RuleRow(NamedTuple):
    """`code` is the rule as a form carries it."""

    code: str
    fields: Mapping[str, str]
    sentence: str


def rule_row(rule: access.AclBinding) -> RuleRow:
    return RuleRow(json.dumps(list(rule)), access.as_row(rule), access.describe(rule))


def parse_rules(codes: Sequence[str], most: int) -> list[access.AclBinding]:
    """FormError for anything but codes of `rule_row`."""
    if not 0 < len(codes) <= most:
        raise FormError(f"select 1 to {most} rules")
    rules = []
    for code in codes:
        try:
            kind, name, pattern, principal, host, operation, permission = json.loads(code)
            rule = access.AclBinding(
                access.ResourceType(kind),
                name,
                access.PatternType(pattern),
                principal,
                host,
                access.Operation(operation),
                access.Permission(permission),
            )
        except (ValueError, TypeError):
            raise FormError("a selected rule cannot be read; reload the page") from None
        is_exact = (
            rule.pattern_type in (access.PatternType.LITERAL, access.PatternType.PREFIXED)
            and rule.operation > access.Operation.ANY
            and rule.permission in (access.Permission.ALLOW, access.Permission.DENY)
        )
        if not is_exact or not all(isinstance(text, str) and text for text in (name, principal, host)):
            raise FormError("a selected rule cannot be read; reload the page")
        rules.append(rule)
    return rules


def rule_filters(fields: Mapping[str, str]) -> list[access.AclFilter]:
    """Filters of the address: kind, name (rules that apply to it, or with exactly it), principal."""
    kind, name = fields.get("kind", ""), fields.get("name", "").strip()
    chosen = access.TYPES.get(kind, access.ResourceType.ANY)
    pattern = access.PatternType.MATCH if fields.get("applies") and name else access.PatternType.ANY
    principal = fields.get("principal", "").strip() or None
    return [access.AclFilter(chosen, name or None, pattern, principal=principal)]


def parse_principal(text: str) -> str:
    kind, colon, name = text.partition(":")
    if not (kind and colon and name) or not text.isprintable():
        raise FormError(f"{text[:60]!r} is not TYPE:NAME, such as User:alice or User:*")
    return text


def parse_access(role: str, operation: str) -> access.Access:
    if role == "producer":
        return access.Access(producer=True)
    if role == "consumer":
        return access.Access(consumer=True)
    if operation not in access.OPERATIONS:
        raise FormError("choose an operation")
    return access.Access((access.OPERATIONS[operation],))


class QuotaRow(NamedTuple):
    entity: str
    code: str
    key: str
    limit: str


def quota_text(key: str, value: float) -> str:
    number = f"{value:,.0f}" if value == int(value) else f"{value:g}"
    return f"{number} {access.UNITS.get(key, '')}".rstrip()


def quota_rows(quotas: Mapping[access.Entity, Mapping[str, float]], search: str) -> list[QuotaRow]:
    return [
        QuotaRow(access.entity_text(entity), json.dumps([list(part) for part in entity]), key, quota_text(key, value))
        for entity, limits in quotas.items()
        if has_words(access.entity_text(entity), search)
        for key, value in sorted(limits.items())
    ]


def parse_entity(code: str) -> access.Entity:
    """The entity of a row; FormError for anything else."""
    try:
        parts = tuple(access.Part(str(kind), None if name is None else str(name)) for kind, name in json.loads(code))
    except (ValueError, TypeError):
        parts = ()
    return checked_entity(parts)


def new_entity(names: Mapping[str, str], defaults: Mapping[str, Any]) -> access.Entity:
    """The entity of a form: a name or the default for a user, a client id or an address."""
    parts = []
    for kind, title in ENTITY_TYPES:
        name, is_default = names.get(kind, ""), bool(defaults.get(kind))
        if name and is_default:
            raise FormError(f"{title}: give a name, or choose the default of all others")
        if name or is_default:
            parts.append(access.Part(kind, name or None))
    return checked_entity(tuple(parts))


def checked_entity(parts: access.Entity) -> access.Entity:
    kinds = [part.type for part in parts]
    if not parts or not set(kinds) <= {kind for kind, _ in ENTITY_TYPES} or len(set(kinds)) < len(kinds):
        raise FormError("say whom the quota limits: a user, a client id, both, or an address")
    if "ip" in kinds and len(kinds) > 1:
        raise FormError("an address cannot be combined with a user or a client id")
    return parts
