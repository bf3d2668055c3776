"""PEM texts as Kafka accepts them: also on one line, with spaces in place of line breaks. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from typing import NamedTuple

_BLOCK = re.compile(r"-+BEGIN ([A-Z0-9 ]+?)-+\s+(.*?)-+END \1-+", re.DOTALL)
_HEADER = re.compile(r"^[A-Za-z-]+:.*$", re.MULTILINE)
_LINE_CHARACTERS = 64


class PemBlock(NamedTuple):
    label: str
    text: str
    """The block with line breaks as RFC 7468 has them, ending in one."""

    @property
    def is_certificate(self) -> bool:
        return self.label == "CERTIFICATE"

    @property
    def is_private_key(self) -> bool:
        return self.label.endswith("PRIVATE KEY")


class MalformedPem(ValueError):
    """The message does not contain any of the text, which may be a private key."""


def pem_blocks(text: str) -> list[PemBlock]:
    """The blocks of a text, in their order; `MalformedPem` if one is not base64."""
    return [_block(match[1], match[2]) for match in _BLOCK.finditer(text)]


def _block(label: str, body: str) -> PemBlock:
    if _HEADER.search(body):  # a key in OpenSSL's older encrypted format, whose headers are lines of their own
        return PemBlock(label, f"-----BEGIN {label}-----\n{body.strip()}\n-----END {label}-----\n")
    data = "".join(body.split())
    try:
        base64.b64decode(data, validate=True)
    except binascii.Error:
        raise MalformedPem(f"the block {label} is not base64") from None
    lines = [data[start : start + _LINE_CHARACTERS] for start in range(0, len(data), _LINE_CHARACTERS)]
    return PemBlock(label, "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""]))
