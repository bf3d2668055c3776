"""What is known of the security of a cluster, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.admin.doctor.finding import Facts
from odradek.conventions.addresses import is_loopback

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from odradek.security.acls.bindings import AclBinding

Settings = dict[str, str]


@dataclass(frozen=True, slots=True)
class ListenerFacts:
    """A listener of a broker: its protocol, the host that it is bound to, and the address that clients use."""

    broker_id: int
    name: str
    protocol: str  # PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
    bound_host: str
    host: str
    port: int
    settings: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    is_of_controllers: bool = False

    @property
    def place(self) -> str:
        return f"broker {self.broker_id}, {self.name} ({self.protocol}) at {self.host}:{self.port}"

    @property
    def is_encrypted(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def has_sasl(self) -> bool:
        return self.protocol.startswith("SASL")

    @property
    def is_exposed(self) -> bool:
        """Whether other machines can connect: it is not bound to a loopback address."""
        return not is_loopback(self.bound_host)

    @property
    def is_authenticating(self) -> bool:
        return self.has_sasl or (self.protocol == "SSL" and self.setting("ssl.client.auth", "none") == "required")

    @property
    def mechanisms(self) -> list[str]:
        return [each.strip() for each in self.setting("sasl.enabled.mechanisms", "").split(",") if each.strip()]

    def setting(self, name: str, default: str) -> str:
        """The value for this listener, or for all."""
        own = self.settings.get(f"listener.name.{self.name.lower()}.{name}")
        return own if own is not None else self.settings.get(name, default)


@dataclass(frozen=True, slots=True)
class TlsFacts:
    """What a connection to a TLS listener has shown."""

    listener: ListenerFacts
    days_left: float | None  # of the certificate; None if it could not be read
    versions: tuple[str, ...]  # that the listener accepts
    error: str | None = None


@dataclass(frozen=True, slots=True)
class AnonymousRights:
    """What a client without credentials may do on a listener."""

    listener: ListenerFacts
    cluster_operations: tuple[str, ...]
    topics: Mapping[str, tuple[str, ...]]  # operations of each topic that it sees


@dataclass(frozen=True, slots=True)
class FileFacts:
    path: str
    mode: int
    content: str  # what it has, in words


@dataclass(slots=True)
class SecurityFacts(Facts):
    cluster_id: str | None = None
    brokers: Mapping[int, Settings] | None = None
    listeners: Sequence[ListenerFacts] | None = None
    tls: Sequence[TlsFacts] | None = None
    anonymous: Sequence[AnonymousRights] | None = None
    acls: Sequence[AclBinding] | None = None
    iterations: Mapping[str, int] | None = None  # the fewest of a SCRAM user's credentials
    quota_count: int | None = None
    files: Sequence[FileFacts] | None = None
    consoles: Sequence[str] | None = None  # addresses of consoles without a login that other machines reach
    reasons: Mapping[str, str] = field(default_factory=dict)
    not_requested: Collection[str] = ()
