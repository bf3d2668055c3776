"""The credentials with which brokers log in to each other, by the properties of their listener. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.configuration.config_types import ConfigError
from odradek.configuration.tls_settings import listener_prefix
from odradek.security.sasl_client import credentials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.security.sasl_client.credentials import SaslCredentials

MECHANISM = "sasl.mechanism.inter.broker.protocol"
JAAS = "sasl.jaas.config"
DEFAULT_MECHANISM = "GSSAPI"


def broker_credentials(texts: Mapping[str, str], listener: str) -> SaslCredentials:
    """`ConfigError` names the property to set."""
    prefix = listener_prefix(listener)
    mechanism = texts.get(prefix + MECHANISM, texts.get(MECHANISM, DEFAULT_MECHANISM))
    names = [f"{start}{middle}{JAAS}" for middle in (f"{mechanism.lower()}.", "") for start in (prefix, "")]
    name = next((each for each in names if each in texts), None)
    if name is None:
        raise ConfigError(MECHANISM, mechanism, f"brokers need credentials for each other: set {names[0]}")
    try:
        return credentials.credentials_of_jaas(mechanism, texts[name])
    except ValueError as problem:
        raise ConfigError(name, "[hidden]", str(problem)) from None
