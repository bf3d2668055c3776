"""Quotas of users, client ids and addresses: checked, stored and described. `security/quotas` enforces them.

An entity is a set of (type, name) pairs; a name of None means the default for that type.
"""

from __future__ import annotations

import enum
import ipaddress
from typing import TYPE_CHECKING, NamedTuple

from odradek.conventions.dataclass import dataclass
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

QuotaEntity = frozenset[tuple[str, str | None]]

_USER_AND_CLIENT_QUOTAS = {
    "consumer_byte_rate": 2**63 - 1,
    "producer_byte_rate": 2**63 - 1,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_ADDRESS_QUOTAS = {"connection_creation_rate": 2**31 - 1}
_TYPES = ("user", "client-id", "ip")


class QuotaMatch(enum.IntEnum):
    """How a filter component matches, with DescribeClientQuotas' codes."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


class QuotaFilter(NamedTuple):
    entity_type: str
    match_type: int
    match: str | None


class QuotaOperation(NamedTuple):
    key: str
    value: float
    remove: bool


@dataclass(frozen=True, slots=True)
class QuotaAlteration:
    entity: Sequence[tuple[str, str | None]]
    operations: Sequence[QuotaOperation]


def decide_quota(
    alteration: QuotaAlteration, quotas: Mapping[QuotaEntity, Mapping[str, float]]
) -> dict[str, float | None] | Refusal:
    """The quotas of this entity that change; None removes a quota."""
    refusal = _check_entity(alteration.entity)
    if refusal is not None:
        return refusal
    allowed = _ADDRESS_QUOTAS if any(kind == "ip" for kind, _ in alteration.entity) else _USER_AND_CLIENT_QUOTAS
    current = quotas.get(frozenset(alteration.entity), {})
    changes: dict[str, float | None] = {}
    seen = set()
    for operation in alteration.operations:
        if operation.key in seen:
            return _refuse(f"Duplicate quota key {operation.key} not updating quota for this entity")
        seen.add(operation.key)
        if operation.remove:
            if operation.key in current:
                changes[operation.key] = None
            continue
        refusal = _check_value(operation, allowed)
        if refusal is not None:
            return refusal
        if current.get(operation.key) != operation.value:
            changes[operation.key] = operation.value
    return changes


def _check_entity(entity: Sequence[tuple[str, str | None]]) -> Refusal | None:
    names = dict(entity)
    if not entity:
        return _refuse("Invalid empty client quota entity")
    if len(names) != len(entity):
        return _refuse("Invalid client quota entity, duplicate entity entry")
    for kind, name in entity:
        if kind not in _TYPES:
            return _refuse(f"Unhandled client quota entity type: {kind}")
        if name == "":
            return _refuse(f"Empty {kind} not supported")
    return _check_address(names) if "ip" in names else None


def _check_address(names: Mapping[str, str | None]) -> Refusal | None:
    if len(names) > 1:
        return _refuse("Invalid quota entity combination, IP entity should not be combined with User or ClientId")
    if not _is_address(names["ip"]):
        return _refuse(f"{names['ip']} is not a valid IP or resolvable host.")
    return None


def _is_address(text: str | None) -> bool:
    """Kafka also takes host names, which each broker resolves when it learns of the quota. Here they are refused: a
    quota that depends on the name service of each broker, at one moment, is not what its text says."""
    if text is None:
        return True
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _check_value(operation: QuotaOperation, allowed: Mapping[str, int | None]) -> Refusal | None:
    if operation.key not in allowed:
        return _refuse(f"Invalid configuration key {operation.key}")
    if not operation.value > 0:
        return _refuse(f"Quota {operation.key} must be greater than 0")
    limit = allowed[operation.key]
    if limit is None:
        return None
    if operation.value > limit:
        kind = "an INT" if limit < 2**31 else "a LONG"
        return _refuse(f"Proposed value for {operation.key} is too large for {kind}.")
    if abs(operation.value % 1.0) > 1e-6:
        return _refuse(f"{operation.key} cannot be a fractional value.")
    return None


def describe_client_quotas(
    quotas: Mapping[QuotaEntity, Mapping[str, float]], filters: Iterable[QuotaFilter], *, strict: bool
) -> list[tuple[QuotaEntity, Mapping[str, float]]] | Refusal:
    """The entities that every filter matches; `strict` excludes entities with further parts."""
    wanted: dict[str, QuotaFilter] = {}
    for component in filters:
        if component.entity_type in wanted:
            return _refuse(f"Entity type {component.entity_type} cannot appear more than once in the filter.")
        refusal = _check_filter(component)
        if refusal is not None:
            return refusal
        wanted[component.entity_type] = component
    if "ip" in wanted and len(wanted) > 1:
        return _refuse(
            "Invalid entity filter component combination. IP filter component should not be used with "
            "user or clientId filter component."
        )
    return [(entity, values) for entity, values in quotas.items() if _matches(dict(entity), wanted, strict=strict)]


def _check_filter(component: QuotaFilter) -> Refusal | None:
    if not component.entity_type:
        return _refuse("Invalid empty entity type.")
    if component.entity_type not in _TYPES:
        return Refusal(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {component.entity_type}")
    try:
        match_type = QuotaMatch(component.match_type)
    except ValueError:
        return _refuse(f"Unknown match type {component.match_type}")
    if match_type is QuotaMatch.EXACT and component.match is None:
        return _refuse("Request specified MATCH_TYPE_EXACT, but set match string to null.")
    if match_type is not QuotaMatch.EXACT and component.match is not None:
        return _refuse(f"Request specified MATCH_TYPE_{match_type.name}, but also specified a match string.")
    return None


def _matches(entity: Mapping[str, str | None], wanted: Mapping[str, QuotaFilter], *, strict: bool) -> bool:
    if strict and len(entity) != len(wanted):
        return False
    return all(
        kind in entity and (component.match_type == QuotaMatch.SPECIFIED or entity[kind] == component.match)
        for kind, component in wanted.items()
    )


def _refuse(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
