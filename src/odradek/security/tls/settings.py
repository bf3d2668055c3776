"""The TLS settings of one listener, or of the connections that this broker opens. Secrets are not in their repr."""

from __future__ import annotations

import enum
from dataclasses import field

from odradek.conventions.dataclass import dataclass


class ClientAuth(enum.Enum):
    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class KeyStoreSettings:
    """`ssl.keystore.*` and `ssl.key.password`."""

    type: str | None = None
    location: str | None = None
    password: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    certificate_chain: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)

    @property
    def is_set(self) -> bool:
        return bool(self.location or self.key or self.certificate_chain)


@dataclass(frozen=True, slots=True)
class TrustStoreSettings:
    """`ssl.truststore.*`. Without one the certificates of the operating system are trusted."""

    type: str | None = None
    location: str | None = None
    password: str | None = field(default=None, repr=False)
    certificates: str | None = field(default=None, repr=False)

    @property
    def is_set(self) -> bool:
        return bool(self.location or self.certificates)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    prefix: str
    """The prefix of the properties, for messages: empty, or `listener.name.<listener>.`."""
    key_store: KeyStoreSettings
    trust_store: TrustStoreSettings
    client_auth: ClientAuth = ClientAuth.NONE
    protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()
    checks_host_name: bool = True

    @property
    def files(self) -> tuple[str, ...]:
        """The files that a context is made of."""
        return tuple(path for path in (self.key_store.location, self.trust_store.location) if path)
