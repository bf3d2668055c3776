"""The TLS settings of a listener: its own properties, then those of all listeners, then the defaults. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from odradek.configuration.tls_config_table import TLS_CONFIGS
from odradek.security.tls.settings import ClientAuth, KeyStoreSettings, TlsSettings, TrustStoreSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.configuration.config_types import Value


def listener_prefix(listener: str) -> str:
    return f"listener.name.{listener.lower()}."


def tls_settings(texts: Mapping[str, str], listener: str, *, has_sasl: bool) -> TlsSettings:
    """`ConfigError` for a value that is not allowed. Clients of a listener with SASL authenticate by it: they present
    a certificate only if the listener's own property says so (KIP-684)."""
    prefix = listener_prefix(listener)

    def value(name: str, *, own_only: bool = False) -> Value:
        definition = TLS_CONFIGS[name]
        if prefix + name in texts:
            return replace(definition, name=prefix + name).parse(texts[prefix + name])
        if name in texts and not own_only:
            return definition.parse(texts[name])
        return definition.default

    def text(name: str) -> str | None:
        return cast("str | None", value(name)) or None

    is_own = any(name.startswith(f"{prefix}ssl.") for name in texts)
    return TlsSettings(
        prefix=prefix if is_own else "",
        key_store=KeyStoreSettings(
            type=text("ssl.keystore.type"),
            location=text("ssl.keystore.location"),
            password=text("ssl.keystore.password"),
            key=text("ssl.keystore.key"),
            certificate_chain=text("ssl.keystore.certificate.chain"),
            key_password=text("ssl.key.password"),
        ),
        trust_store=TrustStoreSettings(
            type=text("ssl.truststore.type"),
            location=text("ssl.truststore.location"),
            password=text("ssl.truststore.password"),
            certificates=text("ssl.truststore.certificates"),
        ),
        client_auth=ClientAuth(value("ssl.client.auth", own_only=has_sasl)),
        protocols=cast("tuple[str, ...]", value("ssl.enabled.protocols")),
        cipher_suites=cast("tuple[str, ...]", value("ssl.cipher.suites")),
        checks_host_name=bool(value("ssl.endpoint.identification.algorithm")),
    )


def principal_mapping_rules(texts: Mapping[str, str], listener: str) -> str:
    name = "ssl.principal.mapping.rules"
    own = listener_prefix(listener) + name
    definition = TLS_CONFIGS[name]
    chosen = texts.get(own, texts.get(name, cast("str", definition.default)))
    return cast("str", replace(definition, name=own if own in texts else name).parse(chosen))
