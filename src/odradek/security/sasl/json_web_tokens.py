"""JSON web tokens (RFC 7519) of OAUTHBEARER clients: the keys of an issuer, and the checks of a token. Pure.

Only signatures with asymmetric keys count, and the type of the key decides which algorithms it may be used with, never
the token. joserfc is imported when keys are parsed: it belongs to the extra `odradek[security]`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST_TOKEN_BYTES = 64 * 1024
MOST_KEYS = 1000
_RSA_ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_EC_ALGORITHMS = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}


class InvalidToken(ValueError):
    """The text says which check a token has failed, for the log."""


class UnknownKey(InvalidToken):
    """The token names a key that is not known; it may be a new one of the issuer."""


class MalformedKeys(ValueError):
    """The text says what is wrong with a document of keys."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    audiences: tuple[str, ...]
    issuer: str | None
    clock_skew_s: int
    scope_claim: str
    subject_claim: str


class ValidToken(NamedTuple):
    user: str
    expires_ms: int


class _Key(NamedTuple):
    key_id: str | None
    algorithms: frozenset[str]
    key: Any


class Keys:
    """The keys of an issuer."""

    def __init__(self, keys: list[_Key]) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, key_id: object) -> _Key:
        """A token without a key id is accepted if there is no choice."""
        found = self._keys if key_id is None else [key for key in self._keys if key.key_id == key_id]
        if len(found) != 1:
            raise UnknownKey(f"there is no single key with the id {str(key_id)[:64]!r}")
        return found[0]


def has_library() -> bool:
    try:
        import joserfc  # noqa: F401, PLC0415 - of an extra
    except ImportError:
        return False
    return True


def parse_keys(document: bytes) -> Keys:
    """The usable keys of a JSON web key set (RFC 7517)."""
    from joserfc import jwk  # noqa: PLC0415 - see above
    from joserfc.errors import JoseError  # noqa: PLC0415

    try:
        parsed = json.loads(document)
        entries = parsed["keys"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise MalformedKeys('expected a JSON web key set: {"keys": [...]}') from None
    if not isinstance(entries, list) or len(entries) > MOST_KEYS:
        raise MalformedKeys(f"expected a list of at most {MOST_KEYS} keys")
    keys = []
    for entry in entries:
        algorithms = _algorithms(entry) if isinstance(entry, dict) else frozenset()
        if not algorithms:
            continue  # a key of another kind or for another use
        public = {name: value for name, value in entry.items() if name not in ("d", "p", "q", "dp", "dq", "qi", "oth")}
        try:
            keys.append(_Key(entry.get("kid"), algorithms, jwk.import_key(public)))
        except (JoseError, ValueError, TypeError, KeyError) as problem:
            raise MalformedKeys(f"key {str(entry.get('kid'))[:64]!r} is malformed: {problem}") from None
    if not keys:
        raise MalformedKeys("there is no public RSA, EC or Ed25519 key for signatures")
    return Keys(keys)


def _algorithms(entry: Mapping[str, Any]) -> frozenset[str]:
    """The algorithms that the type of a key allows, or the one of them that the key names."""
    kind, curve = entry.get("kty"), entry.get("crv")
    if entry.get("use", "sig") != "sig":
        return frozenset()
    if kind == "RSA":
        allowed = _RSA_ALGORITHMS
    elif kind == "EC" and isinstance(curve, str) and curve in _EC_ALGORITHMS:
        allowed = frozenset({_EC_ALGORITHMS[curve]})
    elif kind == "OKP" and curve == "Ed25519":
        allowed = frozenset({"EdDSA", "Ed25519"})
    else:
        return frozenset()
    named = entry.get("alg")
    return allowed if named is None else allowed & {named}


def validate_token(token: str, keys: Keys, rules: TokenRules, now_ms: int) -> ValidToken:
    return check_claims(signed_claims(token, keys), rules, now_ms)


def signed_claims(token: str, keys: Keys) -> Mapping[str, Any]:
    """The claims of a token whose signature is genuine; they are not checked."""
    from joserfc import jws  # noqa: PLC0415 - see above
    from joserfc.errors import JoseError  # noqa: PLC0415

    if len(token) > LARGEST_TOKEN_BYTES:
        raise InvalidToken(f"a token of {len(token)} characters")
    try:
        header = jws.extract_compact(token.encode()).headers()
    except (JoseError, ValueError, TypeError, RecursionError) as problem:
        raise InvalidToken(f"it is not a signed token: {type(problem).__name__}") from None
    if not isinstance(header, dict):
        raise InvalidToken("its header is not an object")
    key = keys.find(header.get("kid"))
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in key.algorithms:
        raise InvalidToken(f"algorithm {str(algorithm)[:32]!r} does not fit the key")
    try:
        payload = jws.deserialize_compact(token, key.key, algorithms=[algorithm]).payload
        claims = json.loads(payload)
    except (JoseError, ValueError, TypeError, RecursionError) as problem:
        raise InvalidToken(f"the signature or the content is invalid: {type(problem).__name__}") from None
    if not isinstance(claims, dict):
        raise InvalidToken("the content is not an object")
    return claims


def check_claims(claims: Mapping[str, Any], rules: TokenRules, now_ms: int) -> ValidToken:
    now_s, skew_s = now_ms / 1000, rules.clock_skew_s
    expires_s, not_before_s = _time(claims, "exp"), _time(claims, "nbf")
    if expires_s is None or _time(claims, "iat") is None:
        raise InvalidToken("the claims exp and iat are required")
    if now_s - skew_s >= expires_s:
        raise InvalidToken("it has expired")
    if not_before_s is not None and now_s + skew_s < not_before_s:
        raise InvalidToken("it is not valid yet")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise InvalidToken(f"issuer {str(claims.get('iss'))[:64]!r} is not the expected one")
    audiences = claims.get("aud")
    named = audiences if isinstance(audiences, list) else [audiences]
    if rules.audiences and not any(isinstance(each, str) and each in rules.audiences for each in named):
        raise InvalidToken("it is for another audience")
    scope = claims.get(rules.scope_claim, "")
    if not isinstance(scope, (str, list)) or not all(isinstance(each, str) for each in scope):
        raise InvalidToken(f"the claim {rules.scope_claim} is not a text or a list of texts")
    user = claims.get(rules.subject_claim)
    if not isinstance(user, str) or not user.strip():
        raise InvalidToken(f"the claim {rules.subject_claim} does not name a user")
    # A token that is valid only because clocks differ is so until their largest difference.
    return ValidToken(user, int((expires_s if expires_s > now_s else expires_s + skew_s) * 1000))


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 2**40:
        raise InvalidToken(f"the claim {name} is not a time")
    return value
