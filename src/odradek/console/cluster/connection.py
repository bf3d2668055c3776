"""The connection to the cluster as one user: failures, permissions, and the credentials of those who log in."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster import Cluster
from odradek.admin.errors import BadCredentials, NoSuchTopic, NotAuthorized, SecurityMismatch
from odradek.admin.security import BearerToken
from odradek.conventions.failures import Failure
from odradek.security.sasl_client.credentials import MECHANISMS

__all__ = ["BadCredentials", "Cluster", "NoSuchTopic", "NotAuthorized"]

LOGIN_TIMEOUT_S = 8.0
BEARER = "OAUTHBEARER"
SCRAM = "SCRAM-SHA-512"


def trouble_of(error: Exception) -> str:
    """The message of a failure, which names the right that the user lacks; of any other exception also its type."""
    if isinstance(error, NotAuthorized) and error.needed:
        return f"not allowed: needs {error.needed}"
    return error.message if isinstance(error, Failure) else f"{type(error).__name__}: {error}"


def check_login(cluster: Cluster, mechanism: str) -> None:
    """Failure unless users can log in to the cluster with its client properties."""
    protocol = cluster.properties.get("security.protocol", "plaintext").lower()
    if not protocol.startswith("sasl"):
        raise Failure(
            f"--login needs a listener of the cluster with SASL, and security.protocol is {protocol}; "
            "give -X security.protocol=SASL_SSL, or the client properties with --command-config"
        )
    if mechanism not in (*MECHANISMS, BEARER):
        raise Failure(f"--login sasl knows {', '.join(MECHANISMS)}, not {mechanism}; give -X sasl.mechanisms=…")


def cluster_of_user(cluster: Cluster, mechanism: str, user: str, password: str) -> Cluster:
    named = {"sasl.mechanisms": mechanism, "sasl.username": user, "sasl.password": password}
    return Cluster(cluster.bootstrap_servers, {**_without_credentials(cluster.properties), **named})


def cluster_of_token(cluster: Cluster, user: str, token: str, expires_s: float) -> Cluster:
    properties = {**_without_credentials(cluster.properties), "sasl.mechanisms": BEARER}
    return Cluster(cluster.bootstrap_servers, properties, BearerToken(user, token, expires_s))


def renew_token(cluster: Cluster, user: str, token: str, expires_s: float) -> None:
    cluster.replace_token(BearerToken(user, token, expires_s))


def log_in_as(cluster: Cluster, mechanism: str, user: str, password: str) -> Cluster:
    """The cluster with this user's connections; fails as `log_in` does. Where clients log in with PLAIN, users whose
    credentials are of SCRAM can, too. SCRAM is tried first, because it does not send the password."""
    if mechanism == "PLAIN":
        scram = cluster_of_user(cluster, SCRAM, user, password)
        with suppress(BadCredentials, SecurityMismatch):
            log_in(scram)
            return scram
    found = cluster_of_user(cluster, mechanism, user, password)
    log_in(found)
    return found


def log_in(cluster: Cluster) -> None:
    """BadCredentials if a broker refuses the user; Failure if none answers."""
    BrokerRequests(cluster, LOGIN_TIMEOUT_S).describe()


def _without_credentials(properties: Mapping[str, str]) -> dict[str, str]:
    """The user that the console was started with gives nothing to those who log in."""
    return {name: value for name, value in properties.items() if not name.startswith("sasl.")}
