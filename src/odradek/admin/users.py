"""SCRAM users over the wire. Passwords do not leave this process: brokers get keys that are derived from them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.errors import check
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import alter_user_scram_credentials as altering
from odradek.protocol.messages import describe_user_scram_credentials as describing
from odradek.security.scram_credentials import MECHANISMS_BY_NAME, SALT_BYTES, ScramMechanism, salted_password

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

MECHANISMS = tuple(MECHANISMS_BY_NAME)
DEFAULT_ITERATIONS = 4096


class Credential(NamedTuple):
    user: str
    mechanism: str
    iterations: int


def read_users(cluster: Cluster, names: Sequence[str] = ()) -> list[Credential]:
    """The credentials of these users, or of all. A named user that does not exist has none."""
    users = [describing.UserName(name=name) for name in names]
    request = describing.DescribeUserScramCredentialsRequest(users=users or None)
    response = cluster.requests.ask_any(request, describing.DescribeUserScramCredentialsResponse, 0)
    check(response.error_code, response.error_message, "users", "Describe")
    found = []
    for result in response.results:
        if result.error_code != ErrorCode.RESOURCE_NOT_FOUND:
            check(result.error_code, result.error_message, f"user {result.user}", "Describe")
        found += [
            Credential(result.user, ScramMechanism(each.mechanism).mechanism_name, each.iterations)
            for each in result.credential_infos
            if each.mechanism in MECHANISMS_BY_NAME.values()
        ]
    return sorted(found)


def set_password(cluster: Cluster, user: str, password: str, iterations: Mapping[str, int]) -> None:
    """`iterations` by mechanism. One request for each: a request may name a user once."""
    for name, count in iterations.items():
        mechanism, salt = MECHANISMS_BY_NAME[name], secrets.token_bytes(SALT_BYTES)
        salted = salted_password(mechanism, password, salt, count)
        upsertion = altering.ScramCredentialUpsertion(
            name=user, mechanism=mechanism, iterations=count, salt=salt, salted_password=salted
        )
        _alter(cluster, user, altering.AlterUserScramCredentialsRequest(upsertions=[upsertion]))


def remove_credentials(cluster: Cluster, credentials: Iterable[Credential]) -> None:
    for user, mechanism, _ in credentials:
        deletion = altering.ScramCredentialDeletion(name=user, mechanism=MECHANISMS_BY_NAME[mechanism])
        _alter(cluster, user, altering.AlterUserScramCredentialsRequest(deletions=[deletion]))


def _alter(cluster: Cluster, user: str, request: altering.AlterUserScramCredentialsRequest) -> None:
    for result in cluster.requests.ask_controller(request, altering.AlterUserScramCredentialsResponse, 0).results:
        check(result.error_code, result.error_message, f"user {user}", "Alter")
