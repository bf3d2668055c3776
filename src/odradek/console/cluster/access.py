"""Users, access rules and quotas, by the requests of `odradek user`, `odradek acl` and `odradek quota`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.admin.acls import requests as acl_requests
from odradek.admin.acls.requests import UNKNOWN_SETTINGS, check_access, explanation
from odradek.admin.acls.rules import (
    OPERATIONS,
    TYPES,
    Access,
    Selection,
    Subjects,
    as_row,
    bindings,
    describe,
    unsupported_operation,
)
from odradek.admin.quotas import KEYS_BY_TYPE, UNITS, Entity, Part, alter_quotas, entity_text, read_quotas
from odradek.admin.users import DEFAULT_ITERATIONS, MECHANISMS, Credential, read_users, remove_credentials, set_password
from odradek.console.cluster.connection import CLUSTER, needs
from odradek.conventions.failures import Failure
from odradek.security.acls.bindings import WILDCARD, AclBinding, AclFilter, PatternType, Permission
from odradek.security.authorizer import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster import Cluster

__all__ = [
    "KEYS_BY_TYPE", "MECHANISMS", "OPERATIONS", "TYPES", "UNITS", "Access", "AclBinding", "AclFilter", "Credential",
    "Entity", "Operation", "Part", "PatternType", "Permission", "ResourceType", "Selection", "as_row", "describe",
    "entity_text",
]  # fmt: skip


def list_users(cluster: Cluster) -> list[Credential]:
    with needs("Describe", CLUSTER):
        return read_users(cluster)


def add_user(cluster: Cluster, name: str, password: str, mechanisms: Sequence[str]) -> None:
    with needs("Describe", CLUSTER):
        if read_users(cluster, [name]):
            raise Failure(f"user {name} exists; change its password instead")
    with needs("Alter", CLUSTER):
        set_password(cluster, name, password, dict.fromkeys(mechanisms, DEFAULT_ITERATIONS))


def change_password(cluster: Cluster, name: str, password: str) -> None:
    """Changes the password for all mechanisms that the user has."""
    present = _credentials_of(cluster, name)
    with needs("Alter", CLUSTER):
        set_password(cluster, name, password, {each.mechanism: each.iterations for each in present})


def remove_user(cluster: Cluster, name: str) -> None:
    present = _credentials_of(cluster, name)
    with needs("Alter", CLUSTER):
        remove_credentials(cluster, present)


def _credentials_of(cluster: Cluster, name: str) -> list[Credential]:
    with needs("Describe", CLUSTER):
        present = read_users(cluster, [name])
    if not present:
        raise Failure(f"there is no user {name} with SCRAM credentials")
    return present


def list_rules(cluster: Cluster, wanted: Sequence[AclFilter]) -> list[AclBinding]:
    with needs("Describe", CLUSTER):
        return acl_requests.find(cluster, wanted)


def new_rules(
    selection: Selection, access: Access, principal: str, host: str, permission: Permission, pattern: PatternType
) -> list[AclBinding]:
    """Failure for operations and resources that do not belong together."""
    problem = access.problem(selection) or unsupported_operation(access, selection)
    if problem is not None:
        raise Failure(problem.replace("--", ""))
    return bindings(selection, access, [Subjects((principal,), (host,) if host else (), permission)], pattern)


def add_rules(cluster: Cluster, rules: Sequence[AclBinding]) -> None:
    with needs("Alter", CLUSTER):
        acl_requests.create(cluster, rules)


def remove_rules(cluster: Cluster, rules: Sequence[AclBinding]) -> int:
    """Returns the number of rules that existed."""
    with needs("Alter", CLUSTER):
        return len(acl_requests.delete(cluster, rules))


@dataclass(frozen=True, slots=True)
class AccessQuestion:
    principal: str
    operation: str
    kind: str
    name: str
    host: str


@dataclass(frozen=True, slots=True)
class AccessAnswer:
    is_allowed: bool
    sentence: str
    reason: str
    note: str


def check(cluster: Cluster, question: AccessQuestion) -> AccessAnswer:
    """The decision of `odradek acl check`."""
    name = CLUSTER_NAME if question.kind == "cluster" else question.name
    with needs("Describe", CLUSTER):
        decision, knows_settings = check_access(
            cluster,
            question.principal,
            OPERATIONS[question.operation],
            TYPES[question.kind],
            name,
            question.host or WILDCARD,
        )
    verb = "may" if decision.is_allowed else "may not"
    resource = CLUSTER if question.kind == "cluster" else f"{question.kind} {name}"
    sentence = f"{question.principal} {verb} {question.operation} on {resource}"
    return AccessAnswer(
        decision.is_allowed, sentence, explanation(decision), "" if knows_settings else UNKNOWN_SETTINGS
    )


def list_quotas(cluster: Cluster) -> dict[Entity, dict[str, float]]:
    with needs("DescribeConfigs", CLUSTER):
        return read_quotas(cluster)


def set_quota(cluster: Cluster, entity: Entity, key: str, value: float | None) -> None:
    """Sets the quota, or removes it if the value is None."""
    if key not in KEYS_BY_TYPE[entity[0].type]:
        known = ", ".join(KEYS_BY_TYPE[entity[0].type])
        raise Failure(f"{entity_text(entity)} has no quota {key}; it has {known}")
    if value is not None and not (math.isfinite(value) and value > 0):
        raise Failure(f"{key}: expected a number greater than 0")
    with needs("AlterConfigs", CLUSTER):
        alter_quotas(cluster, entity, {key: value})
