"""The SASL settings of each listener, from Kafka's properties, checked. Pure.

A property may be set for one mechanism of a listener (`listener.name.<listener>.<mechanism>.NAME`), for a listener
(`listener.name.<listener>.NAME`) or for all; the most specific one counts.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, cast

from odradek.configuration.config_types import ConfigError
from odradek.configuration.sasl_config_table import SASL_CONFIGS
from odradek.conventions.client_properties import OAUTHBEARER_MODULE, PLAIN_MODULE, SCRAM_MODULE, JaasError, parse_jaas
from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.configuration.config_types import Value
    from odradek.conventions.client_properties import LoginModule
    from odradek.security.protocols import SecurityProtocol

PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
LOGIN_MODULES = {PLAIN: PLAIN_MODULE, **dict.fromkeys(SCRAM_MECHANISMS, SCRAM_MODULE), OAUTHBEARER: OAUTHBEARER_MODULE}

_ENABLED = "sasl.enabled.mechanisms"
_JAAS = "sasl.jaas.config"
_JWKS = "sasl.oauthbearer.jwks.endpoint.url"
_HIDDEN = "[hidden]"


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    jwks_url: str
    refresh_ms: int
    audiences: tuple[str, ...]
    issuer: str | None
    clock_skew_s: int
    scope_claim: str
    subject_claim: str


@dataclass(frozen=True, slots=True)
class SaslListener:
    """`login_modules` are the parsed lines of `sasl.jaas.config`, by mechanism, where they are set."""

    mechanisms: tuple[str, ...]
    passwords: Mapping[str, str] = field(repr=False)  # of PLAIN
    longest_session_ms: Mapping[str, int]
    login_modules: Mapping[str, LoginModule]
    oauth: OAuthSettings | None = None


def resolve_sasl_listeners(
    protocols: Mapping[str, SecurityProtocol], texts: Mapping[str, str]
) -> dict[str, SaslListener]:
    """The settings of each listener with SASL; `ConfigError` for the first one that cannot be used."""
    return {name: _resolve(name, texts) for name, protocol in protocols.items() if protocol.has_sasl}


def is_sasl_property(base_name: str) -> bool:
    """Whether the part of a property after `listener.name.<listener>.` is read here."""
    for mechanism in LOGIN_MODULES:
        base_name = base_name.removeprefix(f"{mechanism.lower()}.")
    return base_name in SASL_CONFIGS


def listener_property(listener: str, name: str, texts: Mapping[str, str], mechanism: str | None = None) -> str | None:
    """The text of the most specific property that is set."""
    prefix = f"listener.name.{listener.lower()}."
    candidates = [f"{prefix}{mechanism.lower()}.{name}"] if mechanism is not None else []
    return next((texts[each] for each in (*candidates, prefix + name, name) if each in texts), None)


def login_module(listener: str, mechanism: str, texts: Mapping[str, str]) -> LoginModule | None:
    """The login module of a mechanism. A line without a mechanism in its name counts if its module fits."""
    own = f"listener.name.{listener.lower()}.{mechanism.lower()}.{_JAAS}"
    text = listener_property(listener, _JAAS, texts, mechanism)
    if text is None:
        return None
    expected = LOGIN_MODULES[mechanism]
    try:
        module = parse_jaas(text)
    except JaasError as problem:
        raise ConfigError(own if own in texts else _JAAS, _HIDDEN, f"{problem}: {expected} required …;") from None
    if module.name != expected:
        if own in texts:
            raise ConfigError(own, _HIDDEN, f"the login module of {mechanism} must be {expected}")
        return None
    return module


def _resolve(listener: str, texts: Mapping[str, str]) -> SaslListener:
    mechanisms = _mechanisms(listener, texts)
    modules = {
        mechanism: module
        for mechanism in mechanisms
        if (module := login_module(listener, mechanism, texts)) is not None
    }
    sessions = {each: cast("int", _value(listener, "connections.max.reauth.ms", texts, each)) for each in mechanisms}
    return SaslListener(
        mechanisms,
        _passwords(listener, modules.get(PLAIN)) if PLAIN in mechanisms else {},
        sessions,
        modules,
        _oauth(listener, texts) if OAUTHBEARER in mechanisms else None,
    )


def _mechanisms(listener: str, texts: Mapping[str, str]) -> tuple[str, ...]:
    advice = f"choose one or more of {', '.join(LOGIN_MODULES)}"
    text = listener_property(listener, _ENABLED, texts)
    if text is None:
        raise ConfigError(_ENABLED, "GSSAPI", f"the SASL listener {listener} needs other mechanisms; {advice}")
    mechanisms = cast("tuple[str, ...]", _value(listener, _ENABLED, texts))
    if not mechanisms or not set(mechanisms) <= LOGIN_MODULES.keys():
        raise ConfigError(_ENABLED, text, advice)
    return mechanisms


def _passwords(listener: str, module: LoginModule | None) -> dict[str, str]:
    if module is None or not module.users:
        raise ConfigError(
            f"listener.name.{listener.lower()}.plain.{_JAAS}",
            _HIDDEN,
            f'PLAIN needs users: {PLAIN_MODULE} required user_NAME="PASSWORD";',
        )
    if "" in module.users or "" in module.users.values():
        name = f"listener.name.{listener.lower()}.plain.{_JAAS}"
        raise ConfigError(name, _HIDDEN, "names and passwords of users must not be empty")
    return module.users


def _oauth(listener: str, texts: Mapping[str, str]) -> OAuthSettings:
    def value(name: str) -> Value:
        return _value(listener, f"sasl.oauthbearer.{name}", texts, OAUTHBEARER)

    url = cast("str | None", value("jwks.endpoint.url"))
    allowed = cast("tuple[str, ...]", value("allowed.urls"))
    if not url:
        raise ConfigError(_JWKS, url, "OAUTHBEARER needs the keys of the issuer: file:///path or an https address")
    if url.startswith(("http://", "https://")):
        if url not in allowed:
            raise ConfigError(_JWKS, url, "the address must be one of sasl.oauthbearer.allowed.urls")
    elif not url.startswith("file:///"):
        raise ConfigError(_JWKS, url, "expected file:///path or an http or https address")
    return OAuthSettings(
        jwks_url=url,
        refresh_ms=cast("int", value("jwks.endpoint.refresh.ms")),
        audiences=cast("tuple[str, ...] | None", value("expected.audience")) or (),
        issuer=cast("str | None", value("expected.issuer")),
        clock_skew_s=cast("int", value("clock.skew.seconds")),
        scope_claim=cast("str", value("scope.claim.name")),
        subject_claim=cast("str", value("sub.claim.name")),
    )


def _value(listener: str, name: str, texts: Mapping[str, str], mechanism: str | None = None) -> Value:
    definition = SASL_CONFIGS[name]
    text = listener_property(listener, name, texts, mechanism)
    return definition.default if text is None else definition.parse(text)
