"""The messages that a SCRAM client sends (RFC 5802), parsed. Pure; the size is checked before anything is parsed."""

from __future__ import annotations

import base64
import binascii
import re
from typing import NamedTuple

LARGEST_MESSAGE_BYTES = 8192
SMALLEST_NONCE_LENGTH = 8  # clients send 24 characters and more
_NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_ATTRIBUTE = re.compile(r"[A-Za-z]+=.+", re.DOTALL)


class MalformedScram(ValueError):
    """The text names the rule that a message breaks, without the message: it may hold secrets."""


class ClientFirst(NamedTuple):
    gs2_header: str
    bare: str  # what is signed
    authorization_id: str
    user: str
    nonce: str
    is_token: bool


class ClientFinal(NamedTuple):
    without_proof: str  # what is signed
    channel_binding: bytes
    nonce: str
    proof: bytes


def parse_client_first(data: bytes) -> ClientFirst:
    parts = _text(data).split(",")
    if len(parts) < 4:
        raise MalformedScram("the first message is incomplete")
    flag, authorization = parts[0], parts[1]
    if flag.startswith("p="):
        raise MalformedScram("channel binding is not supported")
    if flag not in ("n", "y"):
        raise MalformedScram("the first message has no channel binding flag")
    if authorization and not authorization.startswith("a="):
        raise MalformedScram("the first message has an unknown field before the user name")
    if parts[2].startswith("m="):
        raise MalformedScram("the first message has a mandatory extension")
    if not parts[2].startswith("n=") or not parts[3].startswith("r="):
        raise MalformedScram("the first message lacks a user name or a nonce")
    extensions = _attributes(parts[4:])
    user = _sasl_name(parts[2][2:])
    if not user:
        raise MalformedScram("the user name is empty")
    return ClientFirst(
        gs2_header=f"{flag},{authorization},",
        bare=",".join(parts[2:]),
        authorization_id=_sasl_name(authorization[2:]),
        user=user,
        nonce=_nonce(parts[3][2:]),
        is_token=extensions.get("tokenauth", "").lower() == "true",
    )


def parse_client_final(data: bytes) -> ClientFinal:
    parts = _text(data).split(",")
    if len(parts) < 3 or not (parts[0].startswith("c=") and parts[1].startswith("r=") and parts[-1].startswith("p=")):
        raise MalformedScram("the final message lacks channel binding, nonce or proof")
    _attributes(parts[2:-1])
    return ClientFinal(
        without_proof=",".join(parts[:-1]),
        channel_binding=_decode(parts[0][2:]),
        nonce=_nonce(parts[1][2:]),
        proof=_decode(parts[-1][2:]),
    )


def _text(data: bytes) -> str:
    if len(data) > LARGEST_MESSAGE_BYTES:
        raise MalformedScram(f"a message has {len(data)} bytes, more than {LARGEST_MESSAGE_BYTES}")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise MalformedScram("a message is not UTF-8") from None
    if "\0" in text:
        raise MalformedScram("a message has a NUL character")
    return text


def _attributes(parts: list[str]) -> dict[str, str]:
    if not all(map(_ATTRIBUTE.fullmatch, parts)):
        raise MalformedScram("a message has a malformed extension")
    return {name: value for name, _, value in (part.partition("=") for part in parts)}


def _sasl_name(text: str) -> str:
    """Commas and equals signs in names are escaped; any other use of an equals sign is an error."""
    if "=" in text.replace("=2C", "").replace("=3D", ""):
        raise MalformedScram("a name is not escaped")
    return text.replace("=2C", ",").replace("=3D", "=")


def _nonce(text: str) -> str:
    if not _NONCE.fullmatch(text) or len(text) < SMALLEST_NONCE_LENGTH:
        raise MalformedScram("a nonce is malformed or too short")
    return text


def _decode(text: str) -> bytes:
    try:
        if not _BASE64.fullmatch(text):
            raise MalformedScram("a value is not base64")
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise MalformedScram("a value is not base64") from None
