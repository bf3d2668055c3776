"""Users, access rules and quotas as they are shown, and the forms that describe them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.admin.acls import OPERATIONS, TYPES, Access, as_row, checked_principal, describe
from odradek.admin.quotas import Entity, Part, entity_text, value_text
from odradek.console.views.figures import FormError, has_words
from odradek.security.acls.bindings import AclBinding, AclFilter, PatternType, Permission
from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from odradek.admin.users import Credential

ENTITY_TYPES = (("user", "User"), ("client-id", "Client id"), ("ip", "Address"))


class UserRow(NamedTuple):
    name: str
    mechanisms: str
    iterations: str


def user_rows(credentials: Iterable[Credential], search: str) -> list[UserRow]:
    """One row for each user whose name has all words of the search."""
    by_name: dict[str, list[Credential]] = {}
    for each in credentials:
        by_name.setdefault(each.user, []).append(each)
    rows = []
    for name, found in sorted(by_name.items()):
        if has_words(name, search):
            iterations = ", ".join(sorted({f"{each.iterations:,}" for each in found}))
            rows.append(UserRow(name, ", ".join(each.mechanism for each in found), iterations))
    return rows


class RuleRow(NamedTuple):
    """`code` is the rule as a form carries it."""

    code: str
    fields: Mapping[str, str]
    sentence: str


def rule_row(rule: AclBinding) -> RuleRow:
    return RuleRow(json.dumps(list(rule)), as_row(rule), describe(rule))


def parse_rules(codes: Sequence[str], most: int) -> list[AclBinding]:
    """FormError for anything but codes of `rule_row`."""
    if not 0 < len(codes) <= most:
        raise FormError(f"select 1 to {most} rules")
    rules = []
    for code in codes:
        try:
            kind, name, pattern, principal, host, operation, permission = json.loads(code)
            resource = ResourceType(kind), name, PatternType(pattern)
            rule = AclBinding(*resource, principal, host, Operation(operation), Permission(permission))
        except (ValueError, TypeError):
            raise FormError("a selected rule cannot be read; reload the page") from None
        is_of_one_kind = rule.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
        is_exact = is_of_one_kind and rule.operation > Operation.ANY
        is_exact = is_exact and rule.permission in (Permission.ALLOW, Permission.DENY)
        if not is_exact or not all(isinstance(text, str) and text for text in (name, principal, host)):
            raise FormError("a selected rule cannot be read; reload the page")
        rules.append(rule)
    return rules


def rule_filters(fields: Mapping[str, str]) -> list[AclFilter]:
    """Filters of the address: kind, name (rules that apply to it, or with exactly it), principal."""
    kind, name = fields.get("kind", ""), fields.get("name", "").strip()
    chosen = TYPES.get(kind, ResourceType.ANY)
    pattern = PatternType.MATCH if fields.get("applies") and name else PatternType.ANY
    principal = fields.get("principal", "").strip() or None
    return [AclFilter(chosen, name or None, pattern, principal=principal)]


def parse_principal(text: str) -> str:
    try:
        return checked_principal(text)
    except ValueError as problem:
        raise FormError(str(problem)) from None


def parse_access(role: str, operation: str) -> Access:
    if role == "producer":
        return Access(producer=True)
    if role == "consumer":
        return Access(consumer=True)
    if operation not in OPERATIONS:
        raise FormError("choose an operation")
    return Access((OPERATIONS[operation],))


class QuotaRow(NamedTuple):
    entity: str
    code: str
    key: str
    limit: str


def quota_rows(quotas: Mapping[Entity, Mapping[str, float]], search: str) -> list[QuotaRow]:
    return [
        QuotaRow(entity_text(entity), json.dumps([list(part) for part in entity]), key, value_text(key, value))
        for entity, limits in quotas.items()
        if has_words(entity_text(entity), search)
        for key, value in sorted(limits.items())
    ]


def parse_entity(code: str) -> Entity:
    """The entity of a row; FormError for anything else."""
    try:
        parts = tuple(Part(str(kind), None if name is None else str(name)) for kind, name in json.loads(code))
    except (ValueError, TypeError):
        parts = ()
    return checked_entity(parts)


def new_entity(names: Mapping[str, str], defaults: Mapping[str, Any]) -> Entity:
    """The entity of a form: a name or the default for a user, a client id or an address."""
    parts = []
    for kind, title in ENTITY_TYPES:
        name, is_default = names.get(kind, ""), bool(defaults.get(kind))
        if name and is_default:
            raise FormError(f"{title}: give a name, or choose the default of all others")
        if name or is_default:
            parts.append(Part(kind, name or None))
    return checked_entity(tuple(parts))


def checked_entity(parts: Entity) -> Entity:
    kinds = [part.type for part in parts]
    if not parts or not set(kinds) <= {kind for kind, _ in ENTITY_TYPES} or len(set(kinds)) < len(kinds):
        raise FormError("say whom the quota limits: a user, a client id, both, or an address")
    if "ip" in kinds and len(kinds) > 1:
        raise FormError("an address cannot be combined with a user or a client id")
    return parts
