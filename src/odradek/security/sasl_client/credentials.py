"""Which exchange a `sasl.jaas.config` line and a mechanism ask for. Pure."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from odradek.conventions.client_properties import PLAIN_MODULE, SCRAM_MODULE, parse_jaas
from odradek.conventions.dataclass import dataclass
from odradek.security.sasl_client.oauthbearer import OauthbearerExchange
from odradek.security.sasl_client.plain import PlainExchange
from odradek.security.sasl_client.scram import HASHES, ScramExchange

if TYPE_CHECKING:
    from odradek.security.sasl_client.exchange import SaslExchange

MECHANISMS = ("PLAIN", *HASHES)


class UnusableCredentials(ValueError):
    """The text names no secret."""


@dataclass(frozen=True, slots=True)
class SaslCredentials:
    mechanism: str
    user: str
    password: str = field(repr=False)
    is_token: bool = False

    def exchange(self, nonce: str) -> SaslExchange:
        if self.mechanism == PlainExchange.mechanism:
            return PlainExchange(self.user, self.password)
        if self.mechanism == OauthbearerExchange.mechanism:
            return OauthbearerExchange(self.password)
        return ScramExchange(self.mechanism, self.user, self.password, nonce, is_token=self.is_token)


def credentials_of_jaas(mechanism: str, line: str) -> SaslCredentials:
    """`UnusableCredentials`, or JaasError, which is a ValueError too."""
    if mechanism not in MECHANISMS:
        raise UnusableCredentials(f"{mechanism} is not one of {', '.join(MECHANISMS)}")
    module = parse_jaas(line)
    expected = PLAIN_MODULE if mechanism == PlainExchange.mechanism else SCRAM_MODULE
    if module.name != expected:
        raise UnusableCredentials(f"the login module of {mechanism} is {expected}, not {module.name}")
    user, password = module.options.get("username"), module.options.get("password")
    if not user or password is None:
        raise UnusableCredentials('the login module needs username="…" and password="…"')
    is_token = module.options.get("tokenauth", "").lower() == "true"
    return SaslCredentials(mechanism, user, password, is_token)
