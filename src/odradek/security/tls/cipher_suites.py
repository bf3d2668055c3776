"""`ssl.cipher.suites` with the names of Java and IANA, as OpenSSL names them. Pure.

Python sets the suites of TLS 1.2 only. A list without a suite of TLS 1.3 turns TLS 1.3 off, and one with only such
suites turns TLS 1.2 off; which of the three suites of TLS 1.3 are named makes no difference.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_TLS_1_3 = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"})
_TLS_1_2 = re.compile(
    r"TLS_(?P<exchange>ECDHE_ECDSA|ECDHE_RSA|DHE_RSA|RSA)_WITH_"
    r"(?:AES_(?P<bits>128|256)_(?P<mode>GCM|CBC)_(?P<hash>SHA(?:256|384)?)|(?P<chacha>CHACHA20_POLY1305)_SHA256)"
)


class UnknownCipherSuite(ValueError):
    pass


class CipherChoice(NamedTuple):
    protocols: tuple[str, ...]
    ciphers: str | None
    """The suites of TLS 1.2 in OpenSSL's notation; None leaves them to OpenSSL."""


def choose_ciphers(suites: Sequence[str], protocols: tuple[str, ...]) -> CipherChoice:
    if not suites:
        return CipherChoice(protocols, None)
    older = [_openssl_name(suite) for suite in suites if suite not in _TLS_1_3]
    usable = set()
    if older:
        usable.add("TLSv1.2")
    if len(older) < len(suites):
        usable.add("TLSv1.3")
    kept = tuple(protocol for protocol in protocols if protocol in usable)
    if not kept:
        raise UnknownCipherSuite(f"no suite in {', '.join(suites)} belongs to {', '.join(protocols)}")
    return CipherChoice(kept, ":".join(older) or None)


def _openssl_name(suite: str) -> str:
    match = _TLS_1_2.fullmatch(suite)
    if match is None:
        raise UnknownCipherSuite(f"{suite} is not a cipher suite that is supported")
    exchange = "" if match["exchange"] == "RSA" else match["exchange"].replace("_", "-") + "-"
    if match["chacha"]:
        return f"{exchange}CHACHA20-POLY1305"
    mode = "GCM-" if match["mode"] == "GCM" else ""
    return f"{exchange}AES{match['bits']}-{mode}{match['hash']}"
