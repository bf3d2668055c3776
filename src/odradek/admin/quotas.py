"""Quotas of users, client ids and addresses: read and changed over the wire, and shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.errors import check
from odradek.protocol.messages import alter_client_quotas as altering
from odradek.protocol.messages import describe_client_quotas as describing

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

VERSION = 1
EXACT, DEFAULT = 0, 1
USER, CLIENT_ID, ADDRESS = "user", "client-id", "ip"
TYPES = (USER, CLIENT_ID, ADDRESS)
CLIENT_KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
KEYS_BY_TYPE = {USER: CLIENT_KEYS, CLIENT_ID: CLIENT_KEYS, ADDRESS: ("connection_creation_rate",)}
UNITS = {
    "producer_byte_rate": "bytes/s",
    "consumer_byte_rate": "bytes/s",
    "request_percentage": "%",
    "controller_mutation_rate": "partitions/s",
    "connection_creation_rate": "connections/s",
}


class Part(NamedTuple):
    """`name` is None for the default."""

    type: str
    name: str | None

    def __str__(self) -> str:
        return f"default {self.type}" if self.name is None else f"{self.type} {self.name}"


Entity = tuple[Part, ...]


def alter_quotas(cluster: Cluster, entity: Entity, changes: Mapping[str, float | None]) -> None:
    """None removes a quota."""
    parts = [altering.EntityData(entity_type=part.type, entity_name=part.name) for part in entity]
    limits = changes.items()
    changed = [altering.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in limits]
    entry = altering.EntryData(entity=parts, ops=changed)
    request = altering.AlterClientQuotasRequest(entries=[entry])
    response = cluster.requests.ask_controller(request, altering.AlterClientQuotasResponse, VERSION)
    for result in response.entries:
        check(result.error_code, result.error_message, entity_text(entity), "AlterConfigs")


def read_quotas(cluster: Cluster, wanted: Entity = (), *, is_exact: bool = False) -> dict[Entity, dict[str, float]]:
    """The quotas of entities with these parts, by entity; with `is_exact` those of no further parts."""
    components = []
    for part in wanted:
        kind = DEFAULT if part.name is None else EXACT
        components.append(describing.ComponentData(entity_type=part.type, match_type=kind, match=part.name))
    request = describing.DescribeClientQuotasRequest(components=components, strict=is_exact)
    response = cluster.requests.ask_any(request, describing.DescribeClientQuotasResponse, VERSION)
    check(response.error_code, response.error_message, "quotas", "DescribeConfigs")
    found: dict[Entity, dict[str, float]] = {}
    for entry in response.entries or ():
        parts = sorted((Part(part.entity_type, part.entity_name) for part in entry.entity), key=_order)
        found[tuple(parts)] = {each.key: each.value for each in entry.values}
    return dict(sorted(found.items(), key=lambda item: list(map(_order, item[0]))))


def _order(part: Part) -> tuple[int, bool, str]:
    """By type; defaults come last."""
    index = TYPES.index(part.type) if part.type in TYPES else len(TYPES)
    return index, part.name is None, part.name or ""


def entity_text(entity: Entity) -> str:
    return ", ".join(map(str, entity))


def entity_json(entity: Entity) -> dict[str, str | None]:
    return {part.type: part.name for part in entity}


def value_text(key: str, value: float) -> str:
    number = f"{int(value):,}" if value == int(value) else f"{value:g}"
    return f"{number} {UNITS.get(key, '')}".rstrip()
