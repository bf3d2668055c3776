"""`odradek console`: serves the web console of a cluster until Ctrl-C."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.options import flag, option, repeatable
from odradek.cli.framework.output import note, print_json, say
from odradek.cli.framework.parameter_types import TEXT
from odradek.conventions.addresses import is_loopback, split_addresses
from odradek.conventions.failures import Failure
from odradek.host.lifetime_pipe import terminate_when_parent_ends

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

CLEAR_TEXT = ("PLAIN", "OAUTHBEARER")
FILE = click.Path(exists=True, dir_okay=False)
LARGEST_SECRET_BYTES = 10_000


@command(
    ("the cluster at 127.0.0.1:9092, on http://127.0.0.1:8484/", "odradek console"),
    ("another cluster, which the console does not change", "odradek console -b kafka-1:9092 --read-only"),
    ("without card numbers and passwords", "odradek console --mask '$.card.number' --mask '$..password'"),
    ("Avro values of a topic as JSON", "odradek console --schema orders=orders.avsc"),
    (
        "users of the cluster log in, behind a proxy with TLS",
        "odradek console --login sasl --listen 10.0.0.7:8484 --behind-proxy",
    ),
    ("on a free port, for a script", "odradek console --listen 127.0.0.1:0 --format json"),
)
@option(
    "--listen", "HOST:PORT", TEXT,
    "Address of the console; port 0 is any free port. An address that others reach needs --login and TLS.",
    default="127.0.0.1:8484",
)  # fmt: skip
@flag("--read-only", "Refuse every change.")
@repeatable(
    "--mask masks", "RULE", TEXT, "Hide a part of records: key, header:NAME, or a JSON path such as $.card.number."
)
@repeatable(
    "--schema schemas", "TOPIC=FILE", TEXT,
    "Schema of a topic's values: FILE.avsc (Avro), or FILE.desc:MESSAGE (descriptor set of Protobuf).",
)  # fmt: skip
@option(
    "--login", None, click.Choice(["none", "sasl", "oidc"]),
    "Who may open the console: everybody on this machine, users of the cluster with their password, or users "
    "of an OpenID Connect provider.", default="none",
)  # fmt: skip
@option("--tls-cert", "FILE", FILE, "Serve HTTPS with this certificate chain (PEM).")
@option("--tls-key", "FILE", FILE, "Private key of the certificate (PEM).")
@option("--public-url", "URL", TEXT, "The address that browsers open, such as https://console.example.")
@flag("--behind-proxy", "A proxy in front of the console has the TLS certificate.")
@option("--idle-timeout", "MINUTES", click.IntRange(1, 1440), "A session without requests ends.", default=30)
@option("--session-timeout", "MINUTES", click.IntRange(1, 10080), "Every session ends.", default=720)
@option("--oidc-issuer", "URL", TEXT, "Issuer of the OpenID Connect provider.")
@option("--oidc-client-id", "ID", TEXT, "Id of the console with the provider.")
@option("--oidc-client-secret-file", "FILE", FILE, "Its secret, if it has one.")
@option("--oidc-scope", "SCOPES", TEXT, "Scopes.", default="openid")
@option("--oidc-user-claim", "CLAIM", TEXT, "Claim of the ID token that names the user.", default="sub")
@click.option("--stop-with", type=int, hidden=True, help="Descriptor; stop when its other end is closed.")
@cluster_options
def console(
    *, listen: str, read_only: bool, masks: tuple[str, ...], schemas: tuple[str, ...], stop_with: int | None,
    cluster: Cluster, as_json: bool, **access: Any,
) -> None:  # fmt: skip
    """Serve the web console of a cluster: topics, records, groups, brokers, transactions,
    pipelines, examples, access.

    It works with any Kafka cluster. Without a login, everybody who can open the page on this machine has the rights of
    the given client properties. With --login, users log in and have their own rights.
    """
    try:
        from odradek.console.records.json_path import PathError
        from odradek.console.records.masking import DecodeAndMask, SchemaError, load_decoder, parse_rule
        from odradek.console.server import serve
        from odradek.console.settings import ConsoleSettings
    except ModuleNotFoundError as error:
        raise Failure(f"the console needs the package {error.name}: pip install 'odradek[console]'") from None
    host, port = parse_listen(listen)
    try:
        decode_and_mask = DecodeAndMask(tuple(map(parse_rule, masks)), dict(map(load_decoder, schemas)))
    except PathError as error:
        raise click.UsageError(f"--mask: {error}") from None
    except SchemaError as error:
        raise click.UsageError(f"--schema: {error}") from None
    log_changes()
    if stop_with is not None:
        terminate_when_parent_ends(stop_with)
    settings = ConsoleSettings(host, port, read_only, decode_and_mask, **access_settings(cluster, access))
    serve(cluster, settings, lambda address: show_address(address, cluster, as_json))


def parse_listen(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if port == "0" and host:
        return host.strip("[]"), 0
    ((name, number),) = split_addresses(text)[:1]
    return name, number


def access_settings(cluster: Cluster, options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of ConsoleSettings for login, TLS and proxy; Failure or UsageError for options that conflict."""
    from odradek.console.cluster.connection import check_login
    from odradek.console.settings import OidcLogin, SaslLogin, TlsFiles

    login, issuer, client_id = options["login"], options["oidc_issuer"], options["oidc_client_id"]
    certificate, key = options["tls_cert"], options["tls_key"]
    if (certificate is None) != (key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    if login != "oidc" and (issuer or client_id):
        raise click.UsageError("--oidc-issuer and --oidc-client-id need --login oidc")
    if login == "oidc" and not (issuer and client_id):
        raise click.UsageError("--login oidc needs --oidc-issuer and --oidc-client-id")
    method: SaslLogin | OidcLogin | None = None
    if login == "oidc":
        secret = client_secret(options["oidc_client_secret_file"])
        method = OidcLogin(issuer, client_id, secret, options["oidc_scope"], options["oidc_user_claim"])
    elif login == "sasl":
        properties = cluster.properties
        method = SaslLogin(properties.get("sasl.mechanisms", properties.get("sasl.mechanism", "SCRAM-SHA-512")))
    if method is not None:
        mechanism = method.mechanism if isinstance(method, SaslLogin) else "OAUTHBEARER"
        check_login(cluster, mechanism)
        warn_of_clear_text(cluster, mechanism)
    return {
        "login": method,
        "tls": None if certificate is None else TlsFiles(certificate, key),
        "public_url": options["public_url"] or "",
        "is_behind_proxy": options["behind_proxy"],
        "idle_timeout_s": options["idle_timeout"] * 60.0,
        "session_timeout_s": options["session_timeout"] * 60.0,
    }


def client_secret(path: str | None) -> str:
    if path is None:
        return ""
    try:
        with Path(path).open(encoding="utf-8") as file:
            return file.readline(LARGEST_SECRET_BYTES).strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise Failure(f"--oidc-client-secret-file {path}: {problem}") from None


def warn_of_clear_text(cluster: Cluster, mechanism: str) -> None:
    """SCRAM does not send the password."""
    is_encrypted = cluster.properties.get("security.protocol", "").lower() == "sasl_ssl"
    is_local = all(is_loopback(host) for host, _ in split_addresses(cluster.bootstrap_servers))
    if mechanism in CLEAR_TEXT and not is_encrypted and not is_local:
        note(f"warning: {mechanism} sends secrets of users to the brokers unencrypted; use security.protocol=SASL_SSL")


def show_address(address: str, cluster: Cluster, as_json: bool) -> None:
    if as_json:
        print_json({"console": address, "bootstrap_servers": cluster.bootstrap_servers})
    else:
        say(f"console of {cluster.bootstrap_servers}: {address} (Ctrl-C stops)")
    sys.stdout.flush()


def log_changes() -> None:
    """One line on standard error for each change that the console makes."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s console change: %(message)s"))
    audit = logging.getLogger("odradek.console.audit")
    audit.setLevel(logging.INFO)
    audit.addHandler(handler)
    audit.propagate = False
