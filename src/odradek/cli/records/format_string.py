"""The format strings of `odradek produce` and `odradek consume`: `%k`, `%v` and escapes, like those of kcat.

Both directions use one parser, so that `produce -f` can read the output of `consume -f`.
"""

from __future__ import annotations

import re

ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "e": b"\x1b", "\\": b"\\"}
_TOKEN = re.compile(
    r"%(?P<verb>.)|\\x(?P<hex>[0-9a-fA-F]{2})|\\(?P<escape>.)|(?P<text>[^%\\]+)|(?P<stray>.)", re.DOTALL
)

Piece = bytes | str  # literal text as bytes, a verb as its letter


class FormatError(ValueError):
    """A format string that cannot be read; the message says which part."""


def parse_format(text: str, verbs: str) -> list[Piece]:
    """The pieces of a format string: literals joined, verbs one by one; FormatError names an unknown verb or escape."""
    pieces: list[Piece] = []

    def add(literal: bytes) -> None:
        if pieces and isinstance(pieces[-1], bytes):
            pieces[-1] += literal
        else:
            pieces.append(literal)

    for match in _TOKEN.finditer(text):
        verb, hexadecimal, escape = match["verb"], match["hex"], match["escape"]
        if verb == "%":
            add(b"%")
        elif verb is not None:
            if verb not in verbs:
                raise FormatError(f"%{verb} is not one of {', '.join('%' + known for known in verbs)}, %%")
            pieces.append(verb)
        elif hexadecimal is not None:
            add(bytes([int(hexadecimal, 16)]))
        elif escape is not None:
            if escape not in ESCAPES:
                raise FormatError(f"\\{escape} is not one of {', '.join(chr(92) + known for known in ESCAPES)}, \\xHH")
            add(ESCAPES[escape])
        elif match["stray"] is not None:
            raise FormatError(f"a single {match['stray']} at the end is incomplete; write it twice")
        else:
            add(match["text"].encode(errors="surrogateescape"))  # keeps bytes that are not UTF-8
    return pieces
