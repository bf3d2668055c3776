"""SCRAM users over the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in __all__
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from odradek.admin.broker_requests import BrokerRequests, check
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import describe_user_scram_credentials as describing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.admin.cluster import Cluster


MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


MECHANISM_NAMES = dict(enumerate(MECHANISMS, 1))  # by their codes


DEFAULT_ITERATIONS = 4096


REQUEST_TIMEOUT_S = 15.0


class Credential(NamedTuple):
    user: str
    mechanism: str
    iterations: int


def read_users(cluster: Cluster, names: Sequence[str] = ()) -> list[Credential]:
    """The credentials of these users, or of all. A named user that does not exist has none. The request is made over a
    socket of our own: the client library crashes the process when the broker refuses it."""
    cluster.check_reachable()
    request = describing.DescribeUserScramCredentialsRequest(
        users=[describing.UserName(name=name) for name in names] or None
    )
    response = BrokerRequests(cluster).ask_any(request, describing.DescribeUserScramCredentialsResponse, 0)
    check(response.error_code, response.error_message, "users", "Describe")
    found = []
    for result in response.results:
        if result.error_code != ErrorCode.RESOURCE_NOT_FOUND:
            check(result.error_code, result.error_message, f"user {result.user}", "Describe")
        found += [
            Credential(result.user, MECHANISM_NAMES[each.mechanism], each.iterations)
            for each in result.credential_infos
            if each.mechanism in MECHANISM_NAMES
        ]
    return sorted(found)


def set_password(cluster: Cluster, user: str, password: str, iterations: Mapping[str, int]) -> None:
    """`iterations` by mechanism. One request for each: a request may name a user once."""
    for mechanism, count in iterations.items():
        info = ScramCredentialInfo(ScramMechanism[mechanism.replace("-", "_")], count)
        _alter(cluster, user, UserScramCredentialUpsertion(user, info, password.encode()))


def remove_credentials(cluster: Cluster, credentials: Iterable[Credential]) -> None:
    for user, mechanism, _ in credentials:
        _alter(cluster, user, UserScramCredentialDeletion(user, ScramMechanism[mechanism.replace("-", "_")]))


def _alter(cluster: Cluster, user: str, alteration: Any) -> None:
    futures = cluster.admin().alter_user_scram_credentials([alteration], request_timeout=REQUEST_TIMEOUT_S)
    for future in futures.values():
        cluster.finish(future, f"user {user}", "Alter")
