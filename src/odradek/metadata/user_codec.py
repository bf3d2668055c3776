"""Changes of users as bytes, in the format of `change_codec`: SCRAM credentials and delegation tokens. Pure."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Protocol, assert_never

from odradek.metadata.changes import (
    DelegationTokenChanged,
    DelegationTokenRemoved,
    ScramCredentialChanged,
    StandInKeyChosen,
    UserChange,
)
from odradek.security.delegation_tokens import DelegationToken
from odradek.security.principals import Principal
from odradek.security.scram_credentials import ScramCredential, ScramMechanism

if TYPE_CHECKING:
    from collections.abc import Sequence

_SCRAM_CREDENTIAL_CHANGED = 13
_STAND_IN_KEY_CHOSEN = 14
_DELEGATION_TOKEN_CHANGED = 15
_DELEGATION_TOKEN_REMOVED = 16
USER_TAGS = frozenset({13, 14, 15, 16})

_COUNT = struct.Struct(">I")
_INT32 = struct.Struct(">i")
_TIMES = struct.Struct(">qqq")
_SMALLEST_PRINCIPAL_BYTES = 8


class Reader(Protocol):
    def byte(self) -> int: ...

    def flag(self) -> bool: ...

    def int32(self) -> int: ...

    def int64(self) -> int: ...

    def text(self) -> str: ...

    def binary(self) -> bytes: ...

    def count(self, smallest_bytes: int) -> int: ...


def encode_user_change(out: bytearray, change: UserChange) -> None:
    match change:
        case ScramCredentialChanged(user, mechanism, credential):
            out += bytes((_SCRAM_CREDENTIAL_CHANGED, mechanism))
            _put_bytes(out, user.encode())
            _put_credential(out, credential)
        case StandInKeyChosen(key):
            out.append(_STAND_IN_KEY_CHOSEN)
            _put_bytes(out, key)
        case DelegationTokenChanged(token):
            out.append(_DELEGATION_TOKEN_CHANGED)
            _put_bytes(out, token.token_id.encode())
            _put_principals(out, (token.owner, token.requester, *token.renewers))
            out += _TIMES.pack(token.issued_ms, token.expires_ms, token.max_ms)
        case DelegationTokenRemoved(token_id):
            out.append(_DELEGATION_TOKEN_REMOVED)
            _put_bytes(out, token_id.encode())
        case _:
            assert_never(change)


def decode_user_change(tag: int, reader: Reader) -> UserChange:
    """After the tag, which is one of `USER_TAGS`. ValueError when a value is out of range."""
    if tag == _SCRAM_CREDENTIAL_CHANGED:
        mechanism = ScramMechanism(reader.byte())
        return ScramCredentialChanged(reader.text(), mechanism, _read_credential(reader))
    if tag == _STAND_IN_KEY_CHOSEN:
        return StandInKeyChosen(reader.binary())
    if tag == _DELEGATION_TOKEN_CHANGED:
        return DelegationTokenChanged(_read_token(reader))
    return DelegationTokenRemoved(reader.text())


def _put_bytes(out: bytearray, data: bytes) -> None:
    out += _COUNT.pack(len(data))
    out += data


def _put_credential(out: bytearray, credential: ScramCredential | None) -> None:
    out.append(credential is not None)
    if credential is not None:
        for each in (credential.salt, credential.stored_key, credential.server_key):
            _put_bytes(out, each)
        out += _INT32.pack(credential.iterations)


def _read_credential(reader: Reader) -> ScramCredential | None:
    if not reader.flag():
        return None
    return ScramCredential(reader.binary(), reader.binary(), reader.binary(), reader.int32())


def _put_principals(out: bytearray, principals: Sequence[Principal]) -> None:
    out += _COUNT.pack(len(principals))
    for principal in principals:
        _put_bytes(out, principal.type.encode())
        _put_bytes(out, principal.name.encode())


def _read_token(reader: Reader) -> DelegationToken:
    token_id = reader.text()
    count = reader.count(smallest_bytes=_SMALLEST_PRINCIPAL_BYTES)
    owner, requester, *renewers = [Principal(reader.text(), reader.text()) for _ in range(count)]
    return DelegationToken(token_id, owner, requester, tuple(renewers), reader.int64(), reader.int64(), reader.int64())
