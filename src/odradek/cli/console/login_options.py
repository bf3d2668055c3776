"""Options of `odradek console` for its login, its TLS and its address behind a proxy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from odradek.cli.framework.output import note
from odradek.cli.framework.parameter_types import TEXT
from odradek.conventions.addresses import split_addresses
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

F = TypeVar("F", bound=Callable[..., Any])

CLEAR_TEXT = ("PLAIN", "OAUTHBEARER")
FILE = click.Path(exists=True, dir_okay=False)
LARGEST_SECRET_BYTES = 10_000


class LoginOptions(NamedTuple):
    login: str
    tls_cert: str | None
    tls_key: str | None
    public_url: str | None
    behind_proxy: bool
    idle_timeout: int
    session_timeout: int
    oidc_issuer: str | None
    oidc_client_id: str | None
    oidc_client_secret_file: str | None
    oidc_scope: str
    oidc_user_claim: str

    def console_settings(self, cluster: Cluster) -> dict[str, Any]:
        """The fields of ConsoleSettings; Failure or UsageError for options that do not belong together."""
        from odradek.console.cluster.connection import check_login
        from odradek.console.settings import OidcLogin, SaslLogin, TlsFiles

        if (self.tls_cert is None) != (self.tls_key is None):
            raise click.UsageError("--tls-cert and --tls-key belong together")
        if self.login != "oidc" and (self.oidc_issuer or self.oidc_client_id):
            raise click.UsageError("--oidc-issuer and --oidc-client-id need --login oidc")
        login: SaslLogin | OidcLogin | None = None
        if self.login == "sasl":
            properties = cluster.properties
            mechanism = properties.get("sasl.mechanisms", properties.get("sasl.mechanism", "SCRAM-SHA-512"))
            check_login(cluster, mechanism)
            warn_of_clear_text(cluster, mechanism)
            login = SaslLogin(mechanism)
        elif self.login == "oidc":
            if not self.oidc_issuer or not self.oidc_client_id:
                raise click.UsageError("--login oidc needs --oidc-issuer and --oidc-client-id")
            check_login(cluster, "OAUTHBEARER")
            warn_of_clear_text(cluster, "OAUTHBEARER")
            login = OidcLogin(
                self.oidc_issuer, self.oidc_client_id, self._client_secret(), self.oidc_scope, self.oidc_user_claim
            )
        tls = TlsFiles(self.tls_cert, self.tls_key) if self.tls_cert is not None and self.tls_key is not None else None
        return {
            "login": login,
            "tls": tls,
            "public_url": self.public_url or "",
            "is_behind_proxy": self.behind_proxy,
            "idle_timeout_s": self.idle_timeout * 60.0,
            "session_timeout_s": self.session_timeout * 60.0,
        }

    def _client_secret(self) -> str:
        if self.oidc_client_secret_file is None:
            return ""
        try:
            with Path(self.oidc_client_secret_file).open(encoding="utf-8") as file:
                return file.readline(LARGEST_SECRET_BYTES).strip()
        except (OSError, UnicodeDecodeError) as problem:
            raise Failure(f"--oidc-client-secret-file {self.oidc_client_secret_file}: {problem}") from None


def warn_of_clear_text(cluster: Cluster, mechanism: str) -> None:
    """SCRAM does not send the password."""
    from odradek.conventions.addresses import is_loopback

    is_encrypted = cluster.properties.get("security.protocol", "").lower() == "sasl_ssl"
    is_local = all(is_loopback(host) for host, _ in split_addresses(cluster.bootstrap_servers))
    if mechanism in CLEAR_TEXT and not is_encrypted and not is_local:
        note(f"warning: {mechanism} sends secrets of users to the brokers unencrypted; use security.protocol=SASL_SSL")


OPTIONS = (
    click.option(
        "--login", type=click.Choice(["none", "sasl", "oidc"]), default="none", show_default=True,
        help="Who may open the console: everybody on this machine, users of the cluster with their password, or users "
        "of an OpenID Connect provider.",
    ),
    click.option("--tls-cert", metavar="FILE", type=FILE, help="Serve HTTPS with this certificate chain (PEM)."),
    click.option("--tls-key", metavar="FILE", type=FILE, help="Private key of the certificate (PEM)."),
    click.option(
        "--public-url", metavar="URL", type=TEXT, help="The address that browsers open, such as https://console.example."
    ),
    click.option("--behind-proxy", is_flag=True, help="A proxy in front of the console has the TLS certificate."),
    click.option(
        "--idle-timeout", metavar="MINUTES", type=click.IntRange(1, 1440), default=30, show_default=True,
        help="A session without requests ends.",
    ),
    click.option(
        "--session-timeout", metavar="MINUTES", type=click.IntRange(1, 10080), default=720, show_default=True,
        help="Every session ends.",
    ),
    click.option("--oidc-issuer", metavar="URL", type=TEXT, help="Issuer of the OpenID Connect provider."),
    click.option("--oidc-client-id", metavar="ID", type=TEXT, help="Id of the console with the provider."),
    click.option("--oidc-client-secret-file", metavar="FILE", type=FILE, help="Its secret, if it has one."),
    click.option("--oidc-scope", metavar="SCOPES", type=TEXT, default="openid", show_default=True, help="Scopes."),
    click.option(
        "--oidc-user-claim", metavar="CLAIM", type=TEXT, default="sub", show_default=True,
        help="Claim of the ID token that names the user.",
    ),
)  # fmt: skip


def login_options(function: F) -> F:
    """The options above, passed to the command as `access`."""

    @functools.wraps(function)
    def with_access(*arguments: Any, **values: Any) -> Any:
        chosen = LoginOptions(**{name: values.pop(name) for name in LoginOptions._fields})
        return function(*arguments, access=chosen, **values)

    decorated: Any = with_access
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]  # click's decorators return Any
