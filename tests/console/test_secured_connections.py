"""The console by HTTPS, over a cluster with mutual TLS, and at an address that a proxy serves."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from odradek.console.settings import ConsoleSettings, OidcLogin, SaslLogin, TlsFiles, problem_of
from odradek.testing import broker
from tests.commands import run_odradek
from tests.console.conftest import Answer, Visitor, running_console
from tests.console.secured import MECHANISM, PASSWORDS, SASL, secured_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

LOGIN = SaslLogin()
TLS = TlsFiles("cert.pem", "key.pem")
PUBLIC = "https://console.example"


class Secured(NamedTuple):
    directory: Path
    address: str


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("secure") / "certs"
    assert run_odradek("secure", "init", str(directory)).code == 0
    return directory


def broker_properties(certificates: Path) -> dict[str, str]:
    text = (certificates / "broker.properties").read_text()
    properties = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    for name, value in properties.items():
        if name.endswith("store.location"):
            properties[name] = str(certificates / value)
    return properties


@pytest.fixture(scope="module")
def secured(certificates: Path) -> Iterator[Secured]:
    """A broker with mutual TLS."""
    properties = broker_properties(certificates)
    properties["listeners"] = "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"
    with broker(properties) as running:
        yield Secured(certificates, f"127.0.0.1:{running.ports['SSL']}")


@pytest.mark.more(but="profile")
@pytest.mark.parametrize("way", ["secure", "command-config", "profile"])
def test_the_command_connects_to_a_cluster_with_mutual_tls(secured: Secured, way: str, tmp_path: Path) -> None:
    options = {
        "secure": ["--secure", str(secured.directory)],
        "command-config": ["--command-config", str(secured.directory / "client.properties")],
        "profile": ["--profile", "dev"],
    }[way]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    if way == "profile":
        config = str(secured.directory / "client.properties")
        added = run_odradek(
            "profile", "add", "dev", "--command-config", config, "-b", secured.address, XDG_CONFIG_HOME=str(tmp_path)
        )
        assert added.code == 0, added.errors
    else:
        options += ["-b", secured.address]
    command = [sys.executable, "-m", "odradek", "console", "--listen", "127.0.0.1:0", "--format", "json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            visitor = Visitor(json.loads(process.stdout.readline())["console"])
            page = visitor.get("/")
            assert page.status == 200
            assert "1 broker" in page.text or "Brokers" in page.text
            assert visitor.get("/brokers").status == 200
            assert visitor.get("/transactions").status == 200
        finally:
            process.terminate()


def test_users_log_in_to_a_cluster_with_sasl_and_tls(certificates: Path) -> None:
    listener = {
        **{name: value for name, value in broker_properties(certificates).items() if name.startswith("ssl.")},
        "listeners": "SASL_SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": MECHANISM,
        "ssl.client.auth": "none",
    }
    trusting = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(certificates / "ca.pem")}
    with (
        secured_cluster(**listener) as cluster,
        running_console(cluster.address, trusting, login=LOGIN) as address,
        running_console(cluster.address, {"security.protocol": "SASL_SSL"}, login=LOGIN) as distrusting,
    ):
        visitor = Visitor(address)
        assert visitor.log_in("ann", PASSWORDS["ben"]).status == 401
        assert visitor.log_in("ann", PASSWORDS["ann"]).status == 200
        assert "record of ann-orders" in visitor.get("/topics/ann-orders").text
        assert visitor.get("/topics/ben-orders").status == 403
        for path in ("/", "/topics", "/topics/ann-orders", "/groups", "/brokers", "/transactions", "/pipelines"):
            assert visitor.get(path).status == 200, path
        assert Visitor(distrusting).log_in("ann", PASSWORDS["ann"]).status == 502


def test_the_console_serves_https_with_cookies_that_need_it(certificates: Path, bootstrap_server: str) -> None:
    pem = str(certificates / "broker.pem")
    with running_console(bootstrap_server, tls=TlsFiles(pem, pem)) as address:
        assert address.startswith("https://127.0.0.1:")
        context = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
        visitor = Visitor(address)
        connection = http.client.HTTPSConnection(visitor.host, visitor.port, context=context, timeout=60)
        connection.request("GET", "/new-topic")
        answer = connection.getresponse()
        assert answer.status == 200
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-odradek_console=")
        assert {"Secure", "HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
        assert "Domain" not in cookie
        connection.close()


class ProxiedVisitor(Visitor):
    """A browser whose requests a proxy forwards."""

    client = "203.0.113.9"

    def request(
        self, method: str, path: str, body: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        forwarded = {"Host": "console.example", "X-Forwarded-For": f"1.2.3.4, {self.client}", **(headers or {})}
        return super().request(method, path, body, forwarded)


def test_a_proxy_names_the_address_that_attempts_are_limited_by(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "odradek.console.audit")
    with secured_cluster() as cluster:
        login = SaslLogin(MECHANISM)
        with running_console(
            cluster.address, SASL, login=login, public_url=PUBLIC, is_behind_proxy=True, gives_listener=True
        ) as address:
            visitor = ProxiedVisitor(address)
            visitor.get("/login")
            answer = visitor.log_in("ann", PASSWORDS["ann"])
            assert answer.status == 200
            assert any("203.0.113.9 ann: logged in" in line for line in caplog.messages)
            assert visitor.request("GET", "/login", headers={"Host": "evil.example"}).status == 403
            other = visitor.request("POST", "/logout", "x=1", {"Origin": "https://evil.example"})
            assert other.status == 403
            guesser = ProxiedVisitor(address)
            guesser.client = "198.51.100.1"
            assert [guesser.log_in("ann", "wrong").status for _ in range(11)] == [401] * 10 + [429]
            assert ProxiedVisitor(address).log_in("ann", PASSWORDS["ann"]).status == 200


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (ConsoleSettings(host="0.0.0.0"), "it has no login"),
        (ConsoleSettings(host="10.0.0.7", tls=TLS), "it has no login"),
        (ConsoleSettings(is_behind_proxy=True, public_url=PUBLIC), "it has no login"),
        (ConsoleSettings(public_url=PUBLIC), "it has no login"),
        (ConsoleSettings(host="10.0.0.7", login=LOGIN), "would be sent unencrypted"),
        (ConsoleSettings(host="0.0.0.0", login=LOGIN, tls=TLS), "--public-url"),
        (ConsoleSettings(host="0.0.0.0", login=LOGIN, is_behind_proxy=True), "--public-url"),
        (ConsoleSettings(host="::", login=LOGIN, is_behind_proxy=True, public_url="http://c.example"), "unencrypted"),
        (ConsoleSettings(login=LOGIN, public_url="console.example"), "expected https"),
        (ConsoleSettings(login=LOGIN, public_url="https://console.example/console"), "without a path"),
    ],
)
def test_settings_that_are_not_safe_are_refused(settings: ConsoleSettings, words: str) -> None:
    assert words in problem_of(settings)


@pytest.mark.parametrize(
    "settings",
    [
        ConsoleSettings(),
        ConsoleSettings(tls=TLS),
        ConsoleSettings(login=LOGIN),
        ConsoleSettings(host="10.0.0.7", login=LOGIN, tls=TLS),
        ConsoleSettings(host="0.0.0.0", login=OidcLogin("https://i.example", "c"), tls=TLS, public_url=PUBLIC),
        ConsoleSettings(host="0.0.0.0", login=LOGIN, is_behind_proxy=True, public_url=PUBLIC),
    ],
)
def test_safe_settings_are_accepted(settings: ConsoleSettings) -> None:
    assert not problem_of(settings)


def test_secrets_are_not_in_the_text_of_settings() -> None:
    settings = ConsoleSettings(login=OidcLogin("https://issuer.example", "console", "hidden secret"))
    assert "hidden secret" not in repr(settings)
