"""Which of the configured quotas applies to a user and a client id: the most specific, in Kafka's order. Pure.

    user and client id > user and default client id > user
    > default user and client id > default user and default client id > default user
    > client id > default client id

The chosen quota also determines which clients share it. A quota of a user is shared by all connections of the user;
one that names a client id, or its default, is counted for each client id of its own.

Departure from Kafka: a request without a client id is subject to the quotas of the default client id. In Kafka it is
not.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

QuotaEntity = frozenset[tuple[str, "str | None"]]

USER = "user"
CLIENT_ID = "client-id"
LONGEST_KEPT_NAME = 256


class QuotaKey(NamedTuple):
    """The clients that share a quota: those of a user, of a client id, or of a client id of a user."""

    user: str | None
    client_id: str | None


class ApplicableQuota(NamedTuple):
    key: QuotaKey
    limit: float


_Pair = tuple[str | None, str | None]


class QuotaLevels:
    """The limits of one kind, such as `producer_byte_rate`, by the entities that they are set for."""

    __slots__ = ("_by_client", "_by_pair", "_by_user", "is_empty")

    def __init__(self, quotas: Mapping[QuotaEntity, Mapping[str, float]], name: str) -> None:
        self._by_pair: dict[_Pair, float] = {}
        self._by_user: dict[str | None, float] = {}
        self._by_client: dict[str | None, float] = {}
        for entity, values in quotas.items():
            limit = values.get(name)
            if limit is None:
                continue
            names = dict(entity)
            if USER in names and CLIENT_ID in names:
                self._by_pair[names[USER], names[CLIENT_ID]] = limit
            elif USER in names:
                self._by_user[names[USER]] = limit
            elif CLIENT_ID in names:
                self._by_client[names[CLIENT_ID]] = limit
        self.is_empty = not (self._by_pair or self._by_user or self._by_client)

    def find(self, user: str, client_id: str) -> ApplicableQuota | None:
        """None if no quota applies to this client."""
        pairs, users, clients = self._by_pair, self._by_user, self._by_client
        for level_user in (user, None):
            for level_client in (client_id, None):
                if (level_user, level_client) in pairs:
                    key = QuotaKey(_bounded(user), _bounded(client_id))
                    return ApplicableQuota(key, pairs[level_user, level_client])
            if level_user in users:
                return ApplicableQuota(QuotaKey(_bounded(user), None), users[level_user])
        for level_client in (client_id, None):
            if level_client in clients:
                return ApplicableQuota(QuotaKey(None, _bounded(client_id)), clients[level_client])
        return None


def _bounded(name: str) -> str:
    """The name, or a digest of a long one: the peer chooses its client id, and it is kept with the rate."""
    if len(name) <= LONGEST_KEPT_NAME:
        return name
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
