"""The settings of the console: its address, its login, its limits on what others may do."""

from __future__ import annotations

from dataclasses import field
from typing import NamedTuple
from urllib.parse import urlsplit

from odradek.console.records.masking import DecodeAndMask
from odradek.conventions.addresses import is_loopback
from odradek.conventions.dataclass import dataclass

DEFAULT_PORT = 8484
EVERY_ADDRESS = ("0.0.0.0", "::", "")
LOGIN_ADVICE = "choose --login sasl or --login oidc"


class SaslLogin(NamedTuple):
    """Users of the cluster log in with their password, by PLAIN or SCRAM."""

    mechanism: str = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True)
class OidcLogin:
    """Users log in with an OpenID Connect provider; their access token goes to the cluster as OAUTHBEARER."""

    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    scope: str = "openid"
    user_claim: str = "sub"


class TlsFiles(NamedTuple):
    """PEM files."""

    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    is_read_only: bool = False
    decode_and_mask: DecodeAndMask = field(default_factory=DecodeAndMask)
    sample_interval_s: float = 2.0
    login: SaslLogin | OidcLogin | None = None
    tls: TlsFiles | None = None
    public_url: str = ""
    is_behind_proxy: bool = False
    idle_timeout_s: float = 1800.0
    session_timeout_s: float = 12 * 3600.0

    @property
    def is_masked(self) -> bool:
        """Whether parts of records are hidden, and with them texts that may quote a record."""
        return bool(self.decode_and_mask.masks)

    @property
    def is_https(self) -> bool:
        """Whether browsers reach the console by HTTPS, so that cookies can require it."""
        return self.public_url.startswith("https:") if self.public_url else self.tls is not None

    @property
    def hosts(self) -> frozenset[str]:
        """Host names under which browsers may open the console, beside those of this machine."""
        names = {host_of(urlsplit(self.public_url).netloc)} if self.public_url else set()
        if self.host not in EVERY_ADDRESS:
            names.add(self.host.lower())
        return frozenset(names)


def problem_of(settings: ConsoleSettings) -> str:
    """Why the console must not be served with these settings; empty if it may."""
    where = f"--listen {settings.host}"
    if settings.login is None:
        if not is_loopback(settings.host):
            return f"{where}: other machines could open the console, and it has no login; {LOGIN_ADVICE}"
        if settings.is_behind_proxy or settings.public_url:
            return f"--behind-proxy and --public-url let others open the console, and it has no login; {LOGIN_ADVICE}"
    if settings.public_url:
        parts = urlsplit(settings.public_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
            return f"--public-url {settings.public_url}: expected https://HOST[:PORT], without a path"
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            return f"--public-url {settings.public_url}: a password would be sent unencrypted; use https"
    if settings.is_behind_proxy and not settings.public_url:
        return "--behind-proxy: give the address that browsers open with --public-url https://HOST"
    if not is_loopback(settings.host):
        if settings.tls is None and not settings.is_behind_proxy:
            return (
                f"{where}: passwords and sessions would be sent unencrypted; give --tls-cert and --tls-key, "
                "or --behind-proxy if a proxy on the way encrypts"
            )
        if settings.host in EVERY_ADDRESS and not settings.public_url:
            return f"{where}: give the address that browsers open with --public-url https://HOST:PORT"
    return ""


def host_of(header: str) -> str:
    """The host of a Host header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()
