"""Users in the metadata: SCRAM credentials, the key for users that do not exist, delegation tokens. Pure."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple, assert_never

from odradek.conventions.dataclass import dataclass
from odradek.metadata.changes import (
    DelegationTokenChanged,
    DelegationTokenRemoved,
    ScramCredentialChanged,
    StandInKeyChosen,
    UserChange,
)
from odradek.security.delegation_tokens import TokenHmacs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.security.delegation_tokens import DelegationToken
    from odradek.security.principals import Principal
    from odradek.security.scram_credentials import ScramCredential, ScramMechanism


class ScramKey(NamedTuple):
    user: str
    mechanism: ScramMechanism


@dataclass(frozen=True, slots=True)
class UserImage:
    """A part of `MetadataImage`."""

    scram_credentials: Mapping[ScramKey, ScramCredential] = field(default_factory=dict)
    stand_in_key: bytes = field(default=b"", repr=False)
    delegation_tokens: Mapping[str, DelegationToken] = field(default_factory=dict)
    tokens_per_owner: Mapping[Principal, int] = field(default_factory=dict)
    token_hmacs: TokenHmacs = field(default_factory=TokenHmacs, compare=False, repr=False)
    """A memo that successive images share."""

    def find_token(self, secret: str, hmac: bytes) -> DelegationToken | None:
        return self.token_hmacs.find(self.delegation_tokens, secret, hmac)

    def as_changes(self) -> list[UserChange]:
        """The changes that make these users from none."""
        changes: list[UserChange] = [
            ScramCredentialChanged(*key, credential) for key, credential in self.scram_credentials.items()
        ]
        if self.stand_in_key:
            changes.append(StandInKeyChosen(self.stand_in_key))
        return changes + [DelegationTokenChanged(token) for token in self.delegation_tokens.values()]


class UserDraft:
    """A writable copy while one commit is applied. A change that contradicts it raises `ValueError`."""

    def __init__(self, users: UserImage) -> None:
        self._credentials = dict(users.scram_credentials)
        self._stand_in_key = users.stand_in_key
        self._tokens = dict(users.delegation_tokens)
        self._tokens_per_owner = dict(users.tokens_per_owner)
        self._token_hmacs = users.token_hmacs

    def apply(self, change: UserChange) -> None:
        match change:
            case ScramCredentialChanged(user, mechanism, credential):
                if credential is not None:
                    self._credentials[ScramKey(user, mechanism)] = credential
                elif self._credentials.pop(ScramKey(user, mechanism), None) is None:
                    raise ValueError(f"user {user} has no credential of {mechanism.mechanism_name}")
            case StandInKeyChosen(key):
                self._stand_in_key = key
            case DelegationTokenChanged(token):
                self._count_token(self._tokens.get(token.token_id), -1)
                self._tokens[token.token_id] = token
                self._count_token(token, 1)
            case DelegationTokenRemoved(token_id):
                if token_id not in self._tokens:
                    raise ValueError(f"there is no delegation token {token_id}")
                self._count_token(self._tokens.pop(token_id), -1)
            case _:
                assert_never(change)

    def _count_token(self, token: DelegationToken | None, difference: int) -> None:
        if token is not None:
            count = self._tokens_per_owner.pop(token.owner, 0) + difference
            if count:
                self._tokens_per_owner[token.owner] = count

    def finish(self) -> UserImage:
        return UserImage(self._credentials, self._stand_in_key, self._tokens, self._tokens_per_owner, self._token_hmacs)


def decide_user_migration(source: UserImage, target: UserImage) -> tuple[list[UserChange], list[str]]:
    """The users of a single broker that a cluster lacks, and those that differ in both."""
    changes: list[UserChange] = []
    collisions = []
    for key, credential in source.scram_credentials.items():
        present = target.scram_credentials.get(key)
        if present is None:
            changes.append(ScramCredentialChanged(*key, credential))
        elif present != credential:
            collisions.append(f"user {key.user} ({key.mechanism.mechanism_name})")
    if source.stand_in_key and not target.stand_in_key:
        changes.append(StandInKeyChosen(source.stand_in_key))
    for token_id, token in source.delegation_tokens.items():
        if token_id not in target.delegation_tokens:
            changes.append(DelegationTokenChanged(token))
    return changes, collisions
